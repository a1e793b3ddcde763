//! Identifiers. Those we make are ULIDs, so they sort by time; those of servers and models are the keys a
//! person sees in `mcp.json` and `settings.json`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $(: $fresh:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            $(
                /// A new one, later in order than every one made before it (to the millisecond).
                pub fn $fresh() -> Self {
                    Self(ulid::Ulid::new().to_string())
                }
            )?
            /// The text as it travels.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    )*};
}

ids! {
    /// One chat.
    ConversationId: fresh;
    /// One message of the person and all that followed from it.
    TurnId: fresh;
    /// One entry of a chat: a message, a tool call, a notice.
    ItemId: fresh;
    /// One question that waits for a person.
    AskId: fresh;
    /// One standing decision.
    PolicyId: fresh;
    /// A connection: its key in `mcp.json`, or `files` for the one we ship.
    ServerId;
    /// A model: its `id` in `settings.json`.
    ModelId;
    /// A stored body: the sha256 of its bytes, in hex.
    BlobId;
}
