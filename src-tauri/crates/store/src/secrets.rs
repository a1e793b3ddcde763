//! Secrets: three verbs over the system's keychain, and what there is when it is not to be had. Never a file.

mod keychain;
mod parts;

pub use keychain::Keychain;
pub use secrecy::{ExposeSecret, SecretString};

use futures::future::{BoxFuture, FutureExt};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a secret is for. Bound to the address it may be sent to: another address is another secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretName {
    /// `model-key`, `env`, `header`, …
    pub purpose: String,
    /// The model or connection it belongs to.
    pub owner: String,
    /// The address it may be sent to; empty for one that is given to a program.
    pub url: String,
}

impl SecretName {
    /// The name of its keychain entry: a hash, because entries' names are not secret and addresses may be.
    fn account(&self, prefix: &str) -> String {
        let mut sha = Sha256::new();
        for part in [prefix, &self.purpose, &self.owner, &self.url] {
            sha.update((part.len() as u64).to_be_bytes());
            sha.update(part);
        }
        crate::blobs::hex(&sha.finalize())
    }
}

/// Why the keychain did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// There is none, or it cannot be reached.
    #[error("no keychain: {0}")]
    Unavailable(String),
    /// It is locked, and nobody unlocked it when asked.
    #[error("the keychain is locked")]
    Locked,
    /// It did not answer in time; most often it waits for a person to unlock it.
    #[error("the keychain did not answer in time")]
    TimedOut,
    #[error("the keychain: {0}")]
    Other(String),
}

/// A place for secrets.
pub trait Secrets: Send + Sync {
    /// The value; nothing when there is none, or only a half-written one.
    fn get(&self, name: &SecretName) -> BoxFuture<'_, Result<Option<SecretString>, SecretError>>;
    /// Keeps a value in place of the one that was there. On an error the old one is still there, or none.
    fn put(&self, name: &SecretName, value: SecretString) -> BoxFuture<'_, Result<(), SecretError>>;
    /// Forgets it; harmless when there is none.
    fn delete(&self, name: &SecretName) -> BoxFuture<'_, Result<(), SecretError>>;
}

/// Secrets in memory, for tests.
#[derive(Default)]
pub struct MemorySecrets {
    values: Mutex<HashMap<SecretName, SecretString>>,
    refuses: Mutex<Option<SecretError>>,
}

impl MemorySecrets {
    /// From now on every verb fails with `error`, as a keychain that is locked or gone does; `None` ends that.
    pub fn refuse(&self, error: Option<SecretError>) {
        *lock(&self.refuses) = error;
    }

    fn ready(&self) -> Result<MutexGuard<'_, HashMap<SecretName, SecretString>>, SecretError> {
        match &*lock(&self.refuses) {
            Some(error) => Err(error.clone()),
            None => Ok(lock(&self.values)),
        }
    }
}

impl Secrets for MemorySecrets {
    fn get(&self, name: &SecretName) -> BoxFuture<'_, Result<Option<SecretString>, SecretError>> {
        let value = self.ready().map(|values| values.get(name).cloned());
        async move { value }.boxed()
    }
    fn put(&self, name: &SecretName, value: SecretString) -> BoxFuture<'_, Result<(), SecretError>> {
        let done = self.ready().map(|mut values| drop(values.insert(name.clone(), value)));
        async move { done }.boxed()
    }
    fn delete(&self, name: &SecretName) -> BoxFuture<'_, Result<(), SecretError>> {
        let done = self.ready().map(|mut values| drop(values.remove(name)));
        async move { done }.boxed()
    }
}

/// A keychain, and beside it the values a person chose to keep until the app quits because there is no keychain.
/// Those are in memory alone, wiped when dropped. A clone is another handle.
#[derive(Clone)]
pub struct SessionSecrets {
    keychain: Arc<dyn Secrets>,
    session: Arc<Mutex<HashMap<SecretName, SecretString>>>,
}

impl SessionSecrets {
    pub fn new(keychain: Arc<dyn Secrets>) -> Self {
        Self { keychain, session: Arc::default() }
    }

    /// Keeps a value until the app quits. It goes before one of the same name in the keychain.
    pub fn put_session(&self, name: &SecretName, value: SecretString) {
        lock(&self.session).insert(name.clone(), value);
    }

    /// Whether the value of this name is gone when the app quits.
    pub fn is_session_only(&self, name: &SecretName) -> bool {
        lock(&self.session).contains_key(name)
    }

    /// The names of all values that are gone when the app quits.
    pub fn session_only(&self) -> Vec<SecretName> {
        lock(&self.session).keys().cloned().collect()
    }
}

impl Secrets for SessionSecrets {
    fn get(&self, name: &SecretName) -> BoxFuture<'_, Result<Option<SecretString>, SecretError>> {
        match lock(&self.session).get(name).cloned() {
            Some(value) => async move { Ok(Some(value)) }.boxed(),
            None => self.keychain.get(name),
        }
    }

    /// Keeps it in the keychain; a value that was for this session only is then replaced.
    fn put(&self, name: &SecretName, value: SecretString) -> BoxFuture<'_, Result<(), SecretError>> {
        let name = name.clone();
        async move {
            self.keychain.put(&name, value).await?;
            lock(&self.session).remove(&name);
            Ok(())
        }
        .boxed()
    }

    /// Forgets both. Without a keychain, forgetting the one in memory is all there is to do.
    fn delete(&self, name: &SecretName) -> BoxFuture<'_, Result<(), SecretError>> {
        let name = name.clone();
        async move {
            let was_here = lock(&self.session).remove(&name).is_some();
            match self.keychain.delete(&name).await {
                Err(SecretError::Unavailable(_)) if was_here => Ok(()),
                other => other,
            }
        }
        .boxed()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
