//! Values longer than an entry may be. Windows holds 2,560 bytes in one.
//!
//! An entry `account` holds either the value itself, or says where its parts are: in entries `account.a.0`,
//! `account.a.1`, … or `account.b.…`, taking turns. The parts are written first and the entry that names them
//! last, so that a crash at any point leaves the value that was there before, or none.

use super::SecretError;
use crate::blobs::hex;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of one part.
pub(crate) const PART: usize = 2_000;
/// Parts of one value. More is no secret we know of: 128 KB.
const MOST: usize = 64;

const WHOLE: u8 = b'1';
const SPLIT: u8 = b'2';

pub(crate) type Bytes = Zeroizing<Vec<u8>>;
type Result<T> = std::result::Result<T, SecretError>;

/// Entries of limited length, one at a time.
pub(crate) trait Entries {
    fn get(&self, account: &str) -> Result<Option<Bytes>>;
    fn set(&self, account: &str, value: &[u8]) -> Result<()>;
    /// False when there was none.
    fn delete(&self, account: &str) -> Result<bool>;
}

pub(crate) fn get(entries: &dyn Entries, account: &str) -> Result<Option<Bytes>> {
    let Some(head) = entries.get(account)? else { return Ok(None) };
    match head.split_first() {
        Some((&WHOLE, value)) => Ok(Some(Zeroizing::new(value.to_vec()))),
        Some((&SPLIT, head)) => {
            let Some(head) = Head::read(head) else { return Ok(None) };
            let mut value = Zeroizing::new(Vec::with_capacity(head.count * PART));
            for at in 0..head.count {
                let Some(part) = entries.get(&head.part(account, at))? else { return Ok(None) };
                value.extend_from_slice(&part);
            }
            Ok((digest(&value) == head.digest).then_some(value))
        }
        _ => Ok(None),
    }
}

pub(crate) fn put(entries: &dyn Entries, account: &str, value: &[u8]) -> Result<()> {
    let old = old_head(entries, account)?;
    if value.len() <= PART {
        let mut whole = Zeroizing::new(Vec::with_capacity(value.len() + 1));
        whole.push(WHOLE);
        whole.extend_from_slice(value);
        entries.set(account, &whole)?;
    } else {
        let count = value.len().div_ceil(PART);
        if count > MOST {
            return Err(SecretError::Other(format!("a value of {} bytes is too long", value.len())));
        }
        let side = if old.as_ref().is_some_and(|old| old.side == 'a') { 'b' } else { 'a' };
        let head = Head { side, count, digest: digest(value) };
        for (at, part) in value.chunks(PART).enumerate() {
            entries.set(&head.part(account, at), part)?;
        }
        entries.set(account, &head.write())?;
    }
    // The new value stands; parts nothing names any more only take room.
    if let Some(old) = old {
        remove_parts(entries, account, &old)?;
    }
    Ok(())
}

pub(crate) fn delete(entries: &dyn Entries, account: &str) -> Result<()> {
    let old = old_head(entries, account)?;
    entries.delete(account)?;
    match old {
        Some(old) => remove_parts(entries, account, &old),
        None => Ok(()),
    }
}

fn old_head(entries: &dyn Entries, account: &str) -> Result<Option<Head>> {
    let head = entries.get(account)?;
    Ok(head.and_then(|head| match head.split_first() {
        Some((&SPLIT, head)) => Head::read(head),
        _ => None,
    }))
}

fn remove_parts(entries: &dyn Entries, account: &str, head: &Head) -> Result<()> {
    for at in 0..head.count {
        entries.delete(&head.part(account, at))?;
    }
    Ok(())
}

/// Where the parts of a value are.
struct Head {
    side: char,
    count: usize,
    digest: String,
}

impl Head {
    fn part(&self, account: &str, at: usize) -> String {
        format!("{account}.{}.{at}", self.side)
    }
    fn write(&self) -> Vec<u8> {
        format!("{}{} {} {}", char::from(SPLIT), self.side, self.count, self.digest).into_bytes()
    }
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let side = match words.next()? {
            "a" => 'a',
            "b" => 'b',
            _ => return None,
        };
        let count = words.next()?.parse().ok().filter(|count| *count <= MOST)?;
        Some(Self { side, count, digest: words.next()?.to_owned() })
    }
}

fn digest(value: &[u8]) -> String {
    hex(&Sha256::digest(value))
}

#[cfg(test)]
mod tests;
