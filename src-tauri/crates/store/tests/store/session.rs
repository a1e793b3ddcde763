//! Secrets without a keychain.

use std::sync::Arc;
use store::{ExposeSecret, MemorySecrets, SecretError, SecretName, SecretString, Secrets, SessionSecrets};

fn name(owner: &str) -> SecretName {
    SecretName { purpose: "model-key".into(), owner: owner.into(), url: "https://api.example/v1".into() }
}

async fn value(secrets: &dyn Secrets, owner: &str) -> Result<Option<String>, SecretError> {
    Ok(secrets.get(&name(owner)).await?.map(|secret| secret.expose_secret().to_owned()))
}

#[tokio::test]
async fn a_value_for_this_session_is_in_memory_alone_and_says_so() {
    let keychain = Arc::new(MemorySecrets::default());
    let secrets = SessionSecrets::new(keychain.clone());
    let gone = SecretError::Unavailable("no bus".into());
    keychain.refuse(Some(gone.clone()));
    assert_eq!(secrets.put(&name("a"), SecretString::from("sk-1")).await, Err(gone.clone()));
    assert_eq!(value(&secrets, "a").await, Err(gone.clone()));
    secrets.put_session(&name("a"), SecretString::from("sk-1"));
    assert_eq!(value(&secrets, "a").await, Ok(Some("sk-1".into())));
    assert_eq!(value(&secrets, "b").await, Err(gone));
    assert!(secrets.is_session_only(&name("a")));
    assert_eq!(secrets.session_only(), [name("a")]);

    keychain.refuse(None);
    assert_eq!(value(keychain.as_ref(), "a").await, Ok(None));
    assert_eq!(value(&SessionSecrets::new(keychain), "a").await, Ok(None));
}

#[tokio::test]
async fn a_value_for_this_session_goes_before_the_old_one_until_a_new_one_is_kept() {
    let keychain = Arc::new(MemorySecrets::default());
    let secrets = SessionSecrets::new(keychain.clone());
    secrets.put(&name("a"), SecretString::from("old")).await.unwrap();
    keychain.refuse(Some(SecretError::Locked));
    secrets.put_session(&name("a"), SecretString::from("new"));
    assert_eq!(value(&secrets, "a").await, Ok(Some("new".into())));
    keychain.refuse(None);
    secrets.put(&name("a"), SecretString::from("newest")).await.unwrap();
    assert!(!secrets.is_session_only(&name("a")));
    assert_eq!(value(keychain.as_ref(), "a").await, Ok(Some("newest".into())));
}

#[tokio::test]
async fn forgetting_works_without_a_keychain_and_not_with_a_locked_one() {
    let keychain = Arc::new(MemorySecrets::default());
    let secrets = SessionSecrets::new(keychain.clone());
    for (error, expected) in
        [(SecretError::Unavailable(String::new()), Ok(())), (SecretError::Locked, Err(SecretError::Locked))]
    {
        keychain.refuse(Some(error));
        secrets.put_session(&name("a"), SecretString::from("sk"));
        assert_eq!(secrets.delete(&name("a")).await, expected);
        assert!(!secrets.is_session_only(&name("a")));
    }
    let gone = SecretError::Unavailable(String::new());
    keychain.refuse(Some(gone.clone()));
    assert_eq!(secrets.delete(&name("never put")).await, Err(gone));
}

#[test]
fn no_text_made_of_a_secret_shows_it() {
    let secret = SecretString::from("sk-very-secret");
    assert!(!format!("{secret:?}").contains("very"));
}
