//! Words for a POSIX shell. Every command line that we print or write into a file is quoted here.

/// A word as a shell reads it: in single quotes unless it is plain.
pub fn quote(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
