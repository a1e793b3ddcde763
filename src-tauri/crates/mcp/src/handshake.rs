//! Meeting a server: which era it speaks, and the first words in it (checklist: both eras).

use crate::config::{Era, EraChoice, Known};
use crate::era::MODERN;
use crate::error::McpError;
use crate::legacy::{self, Welcome};
use crate::modern::{self, Discovered};
use crate::session::Session;
use tokio::time::Instant;

/// Meets a server over its pipes. `known` spares the probe; wrong knowledge costs one more try.
///
/// # Errors
/// Why no revision could be agreed on. [`McpError::NoAnswer`] within `limits.handshake` at the latest.
pub(crate) async fn over_pipes(
    session: &Session,
    choice: EraChoice,
    known: Option<Known>,
) -> Result<Welcome, McpError> {
    let deadline = Instant::now() + session.limits.handshake;
    let left = || deadline.saturating_duration_since(Instant::now());
    match (choice, known.map(|known| known.era)) {
        (EraChoice::Legacy, _) => legacy::initialize(session, left()).await,
        (EraChoice::Modern, _) => match modern::discover(session, left()).await {
            Discovered::Modern(welcome) => Ok(welcome),
            Discovered::Legacy(error) | Discovered::Failed(error) => Err(named(error, session)),
        },
        (EraChoice::Auto, Some(Era::Legacy)) => match legacy::initialize(session, left()).await {
            // Upgraded in place since.
            Err(error @ (McpError::Refused { .. } | McpError::Version { .. })) => {
                match modern::discover(session, left()).await {
                    Discovered::Modern(welcome) => Ok(welcome),
                    Discovered::Legacy(_) | Discovered::Failed(_) => Err(error),
                }
            }
            other => other,
        },
        (EraChoice::Auto, known) => {
            // One that was modern before may take its time to start; one that never was asked gets a short probe, because
            // some servers say nothing at all to what they do not know.
            let patience = if known.is_some() { left() / 2 } else { session.limits.probe.min(left() / 2) };
            match modern::discover(session, patience).await {
                Discovered::Modern(welcome) => Ok(welcome),
                Discovered::Failed(error) => Err(error),
                Discovered::Legacy(_) => match legacy::initialize(session, left()).await {
                    // It was modern all along, and only slow to start.
                    Err(error) if may_be_modern(&error) => match modern::discover(session, left()).await {
                        Discovered::Modern(welcome) => Ok(welcome),
                        Discovered::Legacy(_) | Discovered::Failed(_) => Err(error),
                    },
                    other => other.map_err(|error| named(error, session)),
                },
            }
        }
    }
}

/// Whether a refused handshake may come from a server without one: it says so (code -32022 with what it supports), or
/// nothing against it.
fn may_be_modern(error: &McpError) -> bool {
    match error {
        McpError::Refused { .. } => true,
        McpError::Version { offered } => MODERN.iter().any(|name| offered.contains(name)),
        _ => false,
    }
}

/// Meets a server at an address that speaks Streamable HTTP, if it does.
pub(crate) async fn over_http(
    session: &Session,
    choice: EraChoice,
    known: Option<Known>,
) -> Result<Welcome, McpError> {
    let deadline = Instant::now() + session.limits.handshake;
    let left = || deadline.saturating_duration_since(Instant::now());
    let first_legacy = choice == EraChoice::Legacy
        || (choice == EraChoice::Auto && known.is_some_and(|known| known.era == Era::Legacy));
    if first_legacy {
        return match legacy::initialize(session, left()).await {
            Err(error @ (McpError::Refused { .. } | McpError::Version { .. } | McpError::Http { .. }))
                if choice == EraChoice::Auto =>
            {
                match modern::discover(session, left()).await {
                    Discovered::Modern(welcome) => Ok(welcome),
                    Discovered::Legacy(_) | Discovered::Failed(_) => Err(error),
                }
            }
            other => other,
        };
    }
    let patience = match (choice, known) {
        (EraChoice::Modern, _) => left(),
        (_, Some(_)) => left() / 2,
        (_, None) => session.limits.probe.min(left() / 2),
    };
    match modern::discover(session, patience).await {
        Discovered::Modern(welcome) => Ok(welcome),
        Discovered::Failed(error) => Err(error),
        Discovered::Legacy(error) if choice == EraChoice::Modern => Err(named(error, session)),
        Discovered::Legacy(probe) => match legacy::initialize(session, left()).await {
            // It was modern all along, and only slow.
            Err(error)
                if matches!(probe, McpError::NoAnswer { .. })
                    && (may_be_modern(&error) || matches!(error, McpError::Http { .. })) =>
            {
                match modern::discover(session, left()).await {
                    Discovered::Modern(welcome) => Ok(welcome),
                    Discovered::Legacy(_) | Discovered::Failed(_) => Err(error),
                }
            }
            other => other.map_err(|error| named(error, session)),
        },
    }
}

/// Whether what came back on a POST says that the address may speak HTTP+SSE instead (2024-11-05).
pub(crate) fn may_be_sse(error: &McpError) -> bool {
    matches!(error, McpError::Http { status: 400 | 404 | 405 | 406 | 415, .. } | McpError::NotMcp(_))
}

/// A silence is told with the whole limit, whichever part of it was spent.
fn named(error: McpError, session: &Session) -> McpError {
    match error {
        McpError::NoAnswer { .. } => McpError::NoAnswer { seconds: session.limits.handshake.as_secs() },
        other => other,
    }
}
