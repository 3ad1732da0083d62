//! What each of aider's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    ("aider-confirm", &["(Y)es\n(N)o", "(Y)es\n(N)o\n(A)ll"], &["Yes\nNo", "Say (Y)es"]),
    (
        "aider-waiting",
        &["░█        Waiting for openai/mock-1", "Waiting for gpt-4o"],
        &["I am Waiting for you", "Waiting"],
    ),
    (
        "aider-retrying",
        &["litellm.APIError: x\nRetrying in 0.2 seconds...", "Retrying in 16 seconds...\n"],
        &["Retrying in 0.2 seconds...\nthe parser reads", "Retrying in a moment..."],
    ),
    ("aider-running", &["the parser reads"], &["", " \n "]),
    (
        "aider-signed-out",
        &["The API provider is not able to authenticate you. Check your API key.", "litellm.AuthenticationError: x"],
        &["Tokens: 790 sent", "x litellm.AuthenticationError"],
    ),
    (
        "aider-error",
        &[
            "The API provider's servers are down or overloaded.",
            "litellm.InternalServerError: x",
            "litellm.APIConnectionError: y",
        ],
        &["The API provider is not able", "see litellm.APIError"],
    ),
    (
        "aider-limit",
        &["The API provider has rate limited you. Try again later", "litellm.RateLimitError: x"],
        &["rate limited", "x litellm.RateLimitError"],
    ),
];
