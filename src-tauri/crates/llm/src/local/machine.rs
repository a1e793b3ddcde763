//! What this computer can do.

use std::path::Path;

/// The computer's means, looked at again before every start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Machine {
    /// It has the instructions that our build of llama.cpp uses.
    pub(super) processor: bool,
    /// Bytes a program may take now without pushing others out; `None` where the system does not say.
    pub(super) memory: Option<u64>,
    /// Physical cores this program may use.
    pub(super) cores: u32,
}

impl Machine {
    pub(super) fn look() -> Machine {
        Machine { processor: processor(), memory: memory(), cores: cores() }
    }

    /// One core is left to the person: threads that wait for each other collapse on a busy machine.
    /// `PARLEY_LLAMA_THREADS` overrules, for measurements and tests.
    pub(super) fn threads(&self) -> u32 {
        self.threads_or(std::env::var("PARLEY_LLAMA_THREADS").ok().as_deref())
    }

    fn threads_or(&self, asked: Option<&str>) -> u32 {
        let asked = asked.and_then(|n| n.trim().parse().ok());
        asked.filter(|n| (1..=512).contains(n)).unwrap_or_else(|| self.cores.saturating_sub(1).max(1))
    }
}

fn processor() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
        && std::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    return true;
}

fn memory() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn cores() -> u32 {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let physical = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| physical(&text));
    u32::try_from(physical.unwrap_or(usable).min(usable)).unwrap_or(1)
}

/// Different pairs of package and core; two threads of one core count once.
fn physical(cpuinfo: &str) -> Option<usize> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let pairs: std::collections::BTreeSet<(String, String)> = cpuinfo
        .split("\n\n")
        .filter_map(|block| Some((value(block, "physical id")?, value(block, "core id")?)))
        .collect();
    (!pairs.is_empty()).then_some(pairs.len())
}

/// What a model of this size takes: its file, and 30 % for what it remembers and computes with.
pub(super) fn needed(file: &Path) -> std::io::Result<u64> {
    let size = std::fs::metadata(file)?.len();
    Ok(size.saturating_add(size / 10 * 3))
}

/// Bytes as gigabytes, for a message.
#[allow(clippy::cast_precision_loss)]
pub(super) fn gigabytes(bytes: u64) -> f32 {
    (bytes / (1 << 20)) as f32 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_one_core_count_once() {
        let core = |id, package| format!("processor\t: 0\nphysical id\t: {package}\ncore id\t\t: {id}\n\n");
        assert_eq!(physical(&[core(0, 0), core(0, 0), core(1, 0), core(1, 1)].concat()), Some(3));
        assert_eq!(physical("processor : 0\nBogoMIPS : 50\n\n"), None);
    }

    #[test]
    fn memory_is_what_the_system_calls_available() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn one_core_stays_free_and_one_is_the_least() {
        let threads = |cores, asked| Machine { processor: true, memory: None, cores }.threads_or(asked);
        assert_eq!((threads(8, None), threads(2, None), threads(1, None)), (7, 1, 1));
        assert_eq!((threads(8, Some("3 ")), threads(8, Some("0")), threads(8, Some("all"))), (3, 7, 7));
    }
}
