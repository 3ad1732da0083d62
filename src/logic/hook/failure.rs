//! A turn that ended in an error: what kind, and who can help (`protocol-facts` §4.9).

/// Kind of a failed turn and what helps against it, as `turn-failure/<window>.json` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// `rate_limit`, `transient`, `config`, `auth`, `conversation` or `unknown`.
    pub(super) category: &'static str,
    /// `none`, `paste`, `respawn` or `operator`.
    pub(super) recovery: &'static str,
}

/// Sorts a failure by the error's token, else by the words of the message.
pub(super) fn classify(error: &str, message: &str) -> Failure {
    let failure = |category, recovery| Failure { category, recovery };
    let rate_limit = failure("rate_limit", "none");
    let transient = failure("transient", "paste");
    let config = failure("config", "respawn");
    let auth = failure("auth", "operator");
    match error {
        "rate_limit" | "rate_limit_error" => return rate_limit,
        "server_error" | "overloaded" | "overloaded_error" | "api_error" | "timeout" | "connection_error" => {
            return transient;
        }
        "model_not_found" | "not_found_error" => return config,
        "authentication_error" | "authentication_failed" | "permission_error" | "auth_error" | "forbidden" => {
            return auth;
        }
        _ => {}
    }
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["rate limit", "usage limit", "hit your limit"]) {
        rate_limit
    } else if says(&["api error: 5", "overloaded", "server-side issue", "internal server error"]) {
        transient
    } else if says(&["may not exist", "access to it", "selected model"]) {
        config
    } else if says(&["authentic", "credential", "unauthorized", "forbidden"]) {
        auth
    } else if says(&["thinking", "redacted_thinking", "api error: 400", "api error: 422"]) {
        failure("conversation", "respawn")
    } else {
        failure("unknown", "paste")
    }
}

/// The reset token of a limit notice (`protocol-facts` §3.10); empty if the message names none.
pub(super) fn reset_token(message: &str) -> String {
    let Some((_, after)) = message.split_once("resets ") else { return String::new() };
    let end = after.find(" ·").into_iter().chain(after.find('\n')).min().unwrap_or(after.len());
    let words: Vec<&str> = after.get(..end).unwrap_or_default().split_whitespace().collect();
    words.join("_").chars().filter(|c| !matches!(c, '(' | ')') && !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_sorted_by_token_then_by_words() {
        for (error, message, category, recovery) in [
            ("rate_limit", "", "rate_limit", "none"),
            ("", "You've hit your limit · resets 1am", "rate_limit", "none"),
            ("server_error", "API Error: 500", "transient", "paste"),
            ("", "Overloaded, try later", "transient", "paste"),
            ("model_not_found", "", "config", "respawn"),
            ("authentication_failed", "Invalid API key · Fix external API key", "auth", "operator"),
            ("", "API Error: 400 thinking blocks", "conversation", "respawn"),
            ("surprise", "what", "unknown", "paste"),
        ] {
            assert_eq!(classify(error, message), Failure { category, recovery }, "{error} {message}");
        }
    }

    #[test]
    fn the_reset_token_has_the_form_of_the_screen_reader() {
        for (message, token) in [
            ("You've hit your limit · resets 3am (America/Los_Angeles)", "3am_America/Los_Angeles"),
            ("limit resets 12:42am (UTC) · more", "12:42am_UTC"),
            ("no such word", ""),
        ] {
            assert_eq!(reset_token(message), token);
        }
    }
}
