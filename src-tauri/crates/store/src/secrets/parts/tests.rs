use super::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Entries in memory that hold no more than Windows does, and stop working after so many changes.
#[derive(Default)]
struct Memory {
    entries: RefCell<BTreeMap<String, Vec<u8>>>,
    left: Cell<Option<usize>>,
}

impl Memory {
    fn change(&self) -> Result<()> {
        match self.left.get() {
            Some(0) => Err(SecretError::TimedOut),
            Some(left) => {
                self.left.set(Some(left - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }
    fn names(&self) -> Vec<String> {
        self.entries.borrow().keys().cloned().collect()
    }
}

impl Entries for Memory {
    fn get(&self, account: &str) -> Result<Option<Bytes>> {
        Ok(self.entries.borrow().get(account).cloned().map(Zeroizing::new))
    }
    fn set(&self, account: &str, value: &[u8]) -> Result<()> {
        assert!(value.len() <= 2_560, "{} bytes in one entry", value.len());
        self.change()?;
        self.entries.borrow_mut().insert(account.into(), value.to_vec());
        Ok(())
    }
    fn delete(&self, account: &str) -> Result<bool> {
        self.change()?;
        Ok(self.entries.borrow_mut().remove(account).is_some())
    }
}

fn text(length: usize, letter: u8) -> Vec<u8> {
    (0..length).map(|at| if at % 7 == 0 { letter } else { b'0' + u8::try_from(at % 10).unwrap() }).collect()
}

fn read(memory: &Memory) -> Option<Vec<u8>> {
    get(memory, "x").unwrap().map(|bytes| bytes.to_vec())
}

#[test]
fn values_of_every_length_come_back_and_leave_nothing_behind() {
    let memory = Memory::default();
    for length in [0, 1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 1, 5, 2 * PART, PART * MOST] {
        let value = text(length, b'a');
        put(&memory, "x", &value).unwrap();
        assert_eq!(read(&memory), Some(value));
        let parts = if length <= PART { 0 } else { length.div_ceil(PART) };
        assert_eq!(memory.names().len(), 1 + parts, "{length}");
    }
    delete(&memory, "x").unwrap();
    assert_eq!(memory.names(), Vec::<String>::new());
    delete(&memory, "x").unwrap();
    assert!(put(&memory, "x", &text(PART * MOST + 1, b'a')).is_err());
    assert_eq!(read(&memory), None);
}

#[test]
fn a_crash_at_any_point_of_a_write_leaves_the_old_value_or_the_new_one_whole() {
    for (old, new) in [(0, 9_000), (10, 9_000), (9_000, 10), (9_000, 7_000), (5_000, 9_000)] {
        let before = (old > 0).then(|| text(old, b'o'));
        let after = text(new, b'n');
        for changes in 0..30 {
            let memory = Memory::default();
            if let Some(before) = &before {
                put(&memory, "x", before).unwrap();
            }
            memory.left.set(Some(changes));
            let done = put(&memory, "x", &after).is_ok();
            memory.left.set(None);
            let now = read(&memory);
            assert!(now == before || now.as_ref() == Some(&after), "{old} to {new}, cut after {changes}");
            if done {
                assert_eq!(now.as_ref(), Some(&after));
            }
            // And the next write is well whatever was left.
            put(&memory, "x", &text(4_001, b'l')).unwrap();
            assert_eq!(read(&memory), Some(text(4_001, b'l')));
        }
    }
}

#[test]
fn a_crash_in_the_middle_of_forgetting_forgets() {
    for changes in 1..6 {
        let memory = Memory::default();
        put(&memory, "x", &text(9_000, b'o')).unwrap();
        memory.left.set(Some(changes));
        drop(delete(&memory, "x"));
        assert_eq!(read(&memory), None, "cut after {changes}");
    }
}

#[test]
fn what_is_damaged_or_not_ours_reads_as_absent() {
    let split = || {
        let memory = Memory::default();
        put(&memory, "x", &text(5_000, b'o')).unwrap();
        memory
    };
    let memory = split();
    memory.entries.borrow_mut().remove("x.a.1");
    assert_eq!(read(&memory), None);
    let memory = split();
    memory.entries.borrow_mut().insert("x.a.1".into(), text(PART, b'z'));
    assert_eq!(read(&memory), None);
    for head in
        [&b""[..], b"2", b"2a", b"2a 1", b"2c 1 00", b"2a 999999999 00", b"2a -1 00", b"2a 1 \xff", b"9sk"]
    {
        let memory = Memory::default();
        memory.entries.borrow_mut().insert("x".into(), head.to_vec());
        assert_eq!(read(&memory), None, "{head:?}");
        put(&memory, "x", b"sk").unwrap();
        assert_eq!(read(&memory), Some(b"sk".to_vec()));
    }
}
