//! When to try a server again that failed. Pure: time comes in, decisions go out.

use std::time::Duration;
use tokio::time::Instant;

/// A run that lasted this long makes earlier failures forgotten.
const GOOD_RUN: Duration = Duration::from_secs(60);
/// The longest rest of a server that fails again and again.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// A circuit breaker for one server: closed while it works or may be tried again soon, open while it rests, half open
/// when a single try decides between the two.
#[derive(Debug)]
pub(crate) struct Breaker {
    first: Duration,
    slowest: Duration,
    /// Failures in a row before it rests.
    most: u32,
    failures: u32,
    /// Rests in a row.
    rests: u32,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again after this.
    Again(Duration),
    /// Leave it alone for this long, unless somebody asks for it; then try once.
    Rest(Duration),
}

impl Breaker {
    /// `first` is the pause after the first failure, doubled each time up to `slowest`; after `most` failures in a
    /// row it rests.
    pub(crate) fn new(first: Duration, slowest: Duration, most: u32) -> Self {
        Self { first, slowest, most, failures: 0, rests: 0 }
    }

    /// A run ended. `ready_since` when it had been in use.
    pub(crate) fn failed(&mut self, ready_since: Option<Instant>, now: Instant) -> Next {
        if ready_since.is_some_and(|since| now.saturating_duration_since(since) >= GOOD_RUN) {
            self.failures = 0;
            self.rests = 0;
        }
        self.failures += 1;
        if self.failures >= self.most {
            // Half open next: one more failure makes it rest again, for longer.
            let rest = self.slowest.saturating_mul(2_u32.saturating_pow(self.rests.min(8))).min(LONGEST_REST);
            self.failures = self.most.saturating_sub(1);
            self.rests = self.rests.saturating_add(1);
            return Next::Rest(rest);
        }
        let pause =
            self.first.saturating_mul(2_u32.saturating_pow(self.failures.min(16) - 1)).min(self.slowest);
        Next::Again(pause)
    }
}

/// A pause between half of it and all of it, so that servers that failed together do not come back together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_then_it_rests_and_one_try_decides() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let mut breaker = Breaker::new(ms(500), ms(3_000), 5);
        let next: Vec<Next> = (0..7).map(|_| breaker.failed(None, now)).collect();
        assert_eq!(
            next,
            [
                Next::Again(ms(500)),
                Next::Again(ms(1_000)),
                Next::Again(ms(2_000)),
                Next::Again(ms(3_000)),
                Next::Rest(ms(3_000)),
                Next::Rest(ms(6_000)),
                Next::Rest(ms(12_000)),
            ]
        );
        // A try that held for long closes it again; one that held for a moment does not.
        assert_eq!(breaker.failed(Some(now), now + ms(100)), Next::Rest(ms(24_000)));
        assert_eq!(breaker.failed(Some(now), now + GOOD_RUN), Next::Again(ms(500)));
    }

    #[test]
    fn a_server_that_keeps_failing_never_rests_longer_than_the_longest() {
        let now = Instant::now();
        let mut breaker = Breaker::new(Duration::from_secs(1), Duration::from_secs(60), 1);
        let longest = (0..100).map(|_| breaker.failed(None, now)).last();
        assert_eq!(longest, Some(Next::Rest(LONGEST_REST)));
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(2));
            assert!(pause >= Duration::from_secs(1) && pause <= Duration::from_secs(2));
        }
    }
}
