//! Words for a POSIX shell. Every command line that we print or write into a file is quoted here, and read back here.

/// A word as a shell reads it: in single quotes unless it is plain.
pub fn quote(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a command line of plain and quoted words; `None` if a shell would do more with it than run one program:
/// substitutions, redirections, several commands, an open quote.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(ch) = chars.next() {
        match ch {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => loop {
                let text = word.get_or_insert_default();
                match chars.next()? {
                    '\'' => break,
                    ch => text.push(ch),
                }
            },
            '"' => loop {
                let text = word.get_or_insert_default();
                match chars.next()? {
                    '"' => break,
                    '$' | '`' => return None,
                    '\\' => match chars.next()? {
                        ch @ ('"' | '\\' | '$' | '`') => text.push(ch),
                        ch => text.extend(['\\', ch]),
                    },
                    ch => text.push(ch),
                }
            },
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '$' | '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | '*' | '?' | '[' | '#' | '!' => return None,
            ch => word.get_or_insert_default().push(ch),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_reads_back_and_one_that_does_more_is_none() {
        let words = ["/opt/my ng", "it's", "", "a\\b", "$(x)", "ü;\"q\""];
        let line = words.map(quote).join(" ");
        assert_eq!(split(&line).unwrap(), words);
        assert_eq!(split(r#"a "b \" c" d\ e"#).unwrap(), ["a", "b \" c", "d e"]);
        assert_eq!(split("  ").unwrap(), [""; 0]);
        for more in ["a; b", "a && b", "a $HOME", "a \"$HOME\"", "a > f", "a 'b", "a `b`", "a\nb", "a \\"] {
            assert_eq!(split(more), None, "{more}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        for (word, quoted) in [
            ("w3", "w3"),
            ("plain-1.2", "plain-1.2"),
            ("", "''"),
            ("~", "'~'"),
            ("a b", "'a b'"),
            ("$(x)", "'$(x)'"),
            ("a'$(x)", r"'a'\''$(x)'"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
