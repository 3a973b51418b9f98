//! The policy of a table whose flash is full.

use std::fmt;
use std::str::FromStr;

use crate::WhenFull;

/// Which entries are evicted when flash is full (NSDI'10, section 5.1.2). A structure rejects a policy that it does not
/// support.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The oldest entries are evicted, as many as one write of a buffer needs: full discard, the default and the
    /// cheapest.
    #[default]
    Fifo,
    /// As FIFO, and a lookup that finds its key on flash puts the entry back into the buffer, later
    /// and in the background, so that entries in use stay young.
    Lru,
    /// Partial discard: entries of the oldest incarnation that were neither updated nor removed since
    /// are kept, by putting them back into the buffer. Unlike the paper's, which asks the filters
    /// alone, a filter's answer is verified on flash, so no live entry is dropped by mistake.
    Update,
    /// Partial discard: live entries are kept while their priority is at least the threshold, which
    /// can be changed at any time.
    Threshold(u64),
    /// Partial discard: of each incarnation this many thousandths are kept, the live entries of the
    /// highest priority.
    Top(u16),
    /// Nothing is ever evicted; an insert into a full table is an error.
    Reject,
    /// Nothing is ever evicted; a full table takes more flash and RAM.
    Grow,
}

impl Policy {
    /// Returns the policy for a structure that only supports [`WhenFull`]; `None` if only a BufferHash supports it.
    #[must_use]
    pub const fn when_full(self) -> Option<WhenFull> {
        match self {
            Self::Fifo => Some(WhenFull::EvictOldest),
            Self::Reject => Some(WhenFull::Refuse),
            Self::Grow => Some(WhenFull::Grow),
            Self::Lru | Self::Update | Self::Threshold(_) | Self::Top(_) => None,
        }
    }

    /// Returns whether eviction reads the incarnation and retains some of it.
    #[must_use]
    pub const fn is_partial(self) -> bool {
        matches!(self, Self::Update | Self::Threshold(_) | Self::Top(_))
    }
}

impl From<WhenFull> for Policy {
    fn from(when_full: WhenFull) -> Self {
        match when_full {
            WhenFull::EvictOldest => Self::Fifo,
            WhenFull::Refuse => Self::Reject,
            WhenFull::Grow => Self::Grow,
        }
    }
}

/// The words of policies.
const WORDS: &str = "fifo, lru, update, priority:THRESHOLD, top:THOUSANDTHS, reject or grow";

/// Parses a policy from its word, such as `fifo` or `priority:7`.
impl FromStr for Policy {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (name, number) = word.split_once(':').map_or((word, None), |(a, b)| (a, Some(b)));
        let parsed = number.map(str::parse::<u64>).transpose();
        let number = parsed.map_err(|error| format!("`{word}`: {error}"))?;
        Ok(match (name, number) {
            ("fifo", None) => Self::Fifo,
            ("lru", None) => Self::Lru,
            ("update", None) => Self::Update,
            ("priority", threshold) => Self::Threshold(threshold.unwrap_or(1)),
            ("top", Some(part)) => Self::Top(u16::try_from(part).map_err(|e| e.to_string())?),
            ("reject", None) => Self::Reject,
            ("grow", None) => Self::Grow,
            _ => return Err(format!("`{word}` is no policy; choose {WORDS}")),
        })
    }
}

/// Shows a policy as its word.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo => f.write_str("fifo"),
            Self::Lru => f.write_str("lru"),
            Self::Update => f.write_str("update"),
            Self::Threshold(threshold) => write!(f, "priority:{threshold}"),
            Self::Top(thousandths) => write!(f, "top:{thousandths}"),
            Self::Reject => f.write_str("reject"),
            Self::Grow => f.write_str("grow"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_structure_does_when_it_is_full_is_a_policy() {
        for when_full in [WhenFull::EvictOldest, WhenFull::Refuse, WhenFull::Grow] {
            assert_eq!(Policy::from(when_full).when_full(), Some(when_full));
        }
        assert_eq!(Policy::Lru.when_full(), None);
    }

    #[test]
    fn every_policy_reads_back_as_it_is_shown() {
        let threshold = Policy::Threshold(7);
        let others = [Policy::Fifo, Policy::Lru, Policy::Update, Policy::Top(500), Policy::Grow];
        for policy in others.into_iter().chain([threshold]) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("random".parse::<Policy>().unwrap_err().contains("fifo, lru"));
        assert!("top:x".parse::<Policy>().is_err());
    }
}
