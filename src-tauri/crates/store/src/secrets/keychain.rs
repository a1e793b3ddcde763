//! The system's keychain: Secret Service on Linux, Keychain on macOS, Credential Manager on Windows.
//!
//! A keychain may wait for a person to unlock it, for ever. So every verb runs on a thread of its own and has a
//! limit; while one still waits, others wait for it within their own limits, so that there is one prompt at a
//! time and at most one thread that hangs. The thread is not one of the runtime's, whose end would wait for it.

use super::parts::{self, Bytes, Entries};
use super::{ExposeSecret, SecretError, SecretName, SecretString, Secrets};
use futures::future::{BoxFuture, FutureExt};
use keyring_core::{CredentialStore, Entry, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;
use zeroize::Zeroizing;

/// How long a verb may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Entries of the system's keychain under one prefix.
pub struct Keychain {
    prefix: Arc<str>,
    limit: Duration,
    /// The connection, kept while it works. A failed one is made anew by the next verb, so that a keychain that
    /// comes late is found.
    connection: Arc<Mutex<Option<Arc<CredentialStore>>>>,
}

impl Keychain {
    /// Contacts nothing yet. `prefix` sets runs apart: entries of one are unknown to another.
    pub fn new(prefix: &str) -> Self {
        Self::with_limit(prefix, LIMIT)
    }

    /// As [`Keychain::new`], with another limit for each verb.
    pub fn with_limit(prefix: &str, limit: Duration) -> Self {
        Self { prefix: prefix.into(), limit, connection: Arc::default() }
    }

    fn run<T: Send + 'static>(
        &self,
        name: &SecretName,
        verb: impl Fn(&dyn Entries, &str) -> Result<T, SecretError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, SecretError>> {
        let (prefix, account) = (Arc::clone(&self.prefix), name.account(&self.prefix));
        let connection = Arc::clone(&self.connection);
        async move {
            let deadline = Instant::now() + self.limit;
            let turn = tokio::time::timeout_at(deadline, connection.lock_owned());
            let mut connection = turn.await.map_err(|_| SecretError::TimedOut)?;
            let given_up = GivenUp(Arc::default());
            let stop = Arc::clone(&given_up.0);
            let (tell, told) = oneshot::channel();
            let work = move || {
                let done =
                    with_connection(&mut connection, &prefix, &stop, |entries| verb(entries, &account));
                drop(connection);
                drop(tell.send(done));
            };
            let spawned = std::thread::Builder::new().name("keychain".into()).spawn(work);
            spawned.map_err(|error| SecretError::Other(error.to_string()))?;
            match tokio::time::timeout_at(deadline, told).await {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(SecretError::Other("its thread ended".into())),
                Err(_) => Err(SecretError::TimedOut),
            }
        }
        .boxed()
    }
}

impl Secrets for Keychain {
    fn get(&self, name: &SecretName) -> BoxFuture<'_, Result<Option<SecretString>, SecretError>> {
        self.run(name, |entries, account| {
            let value = parts::get(entries, account)?;
            // Bytes that are no text were not written by us.
            Ok(value.and_then(|bytes| std::str::from_utf8(&bytes).ok().map(SecretString::from)))
        })
    }

    /// After `TimedOut` nothing more is written, but for one entry that was already on its way.
    fn put(&self, name: &SecretName, value: SecretString) -> BoxFuture<'_, Result<(), SecretError>> {
        self.run(name, move |entries, account| parts::put(entries, account, value.expose_secret().as_bytes()))
    }

    fn delete(&self, name: &SecretName) -> BoxFuture<'_, Result<(), SecretError>> {
        self.run(name, parts::delete)
    }
}

/// Set when nobody waits any more: the thread stops before its next entry.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `verb` over the kept connection or a new one. A kept one that fails may have outlived its keychain: once
/// more, with a new one.
fn with_connection<T>(
    kept: &mut Option<Arc<CredentialStore>>,
    prefix: &str,
    stop: &AtomicBool,
    verb: impl Fn(&dyn Entries) -> Result<T, SecretError>,
) -> Result<T, SecretError> {
    if let Some(store) = kept.take() {
        let done = verb(&System { store: &store, prefix, stop });
        match done {
            Err(SecretError::Unavailable(_)) => {}
            other => {
                *kept = Some(store);
                return other;
            }
        }
    }
    let store = connect().map_err(meaning)?;
    let done = verb(&System { store: &store, prefix, stop });
    if !matches!(done, Err(SecretError::Unavailable(_))) {
        *kept = Some(store);
    }
    done
}

struct System<'a> {
    store: &'a Arc<CredentialStore>,
    prefix: &'a str,
    stop: &'a AtomicBool,
}

impl System<'_> {
    fn entry(&self, account: &str) -> Result<Entry, SecretError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(SecretError::TimedOut);
        }
        self.store.build(self.prefix, account, None).map_err(meaning)
    }
}

impl Entries for System<'_> {
    fn get(&self, account: &str) -> Result<Option<Bytes>, SecretError> {
        match self.entry(account)?.get_secret() {
            Ok(value) => Ok(Some(Zeroizing::new(value))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(meaning(error)),
        }
    }
    fn set(&self, account: &str, value: &[u8]) -> Result<(), SecretError> {
        self.entry(account)?.set_secret(value).map_err(meaning)
    }
    fn delete(&self, account: &str) -> Result<bool, SecretError> {
        match self.entry(account)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(meaning(error)),
        }
    }
}

#[cfg(all(unix, not(target_os = "macos")))]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = zbus_secret_service_keyring_store::Store::new()?;
    Ok(store)
}

#[cfg(target_os = "macos")]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = apple_native_keyring_store::keychain::Store::new()?;
    Ok(store)
}

#[cfg(windows)]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

/// What a failure means to a person. Its texts name no value: those of the variants that carry one do not show it.
fn meaning(error: Error) -> SecretError {
    match &error {
        Error::NoStorageAccess(cause) | Error::PlatformFailure(cause) => {
            let locked = matches!(error, Error::NoStorageAccess(_));
            cause_meaning(cause.as_ref(), locked)
        }
        Error::NoDefaultStore | Error::NotSupportedByStore(_) | Error::BadStoreFormat(_) => {
            SecretError::Unavailable(error.to_string())
        }
        // The enum may grow; what we do not know is neither locked nor gone.
        _ => SecretError::Other(error.to_string()),
    }
}

#[cfg(all(unix, not(target_os = "macos")))]
fn cause_meaning(cause: &(dyn std::error::Error + Send + Sync + 'static), locked: bool) -> SecretError {
    use secret_service::Error as Service;
    match cause.downcast_ref::<Service>() {
        Some(Service::Locked | Service::Prompt) => SecretError::Locked,
        // There is a service and no keyring in it yet, nor anybody to make one.
        Some(Service::NoResult) => SecretError::Unavailable("there is no keyring".into()),
        Some(Service::Crypto(_)) => SecretError::Other(cause.to_string()),
        Some(_) => SecretError::Unavailable(cause.to_string()),
        None if locked => SecretError::Locked,
        None => SecretError::Unavailable(cause.to_string()),
    }
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
fn cause_meaning(cause: &(dyn std::error::Error + Send + Sync + 'static), locked: bool) -> SecretError {
    if locked { SecretError::Locked } else { SecretError::Unavailable(cause.to_string()) }
}
