//! The amount of work of sweeps: one variable for all of them.

/// The variable's name. It is `full`, or a factor on the usual work.
const VARIABLE: &str = "NANDEX_SWEEP";

fn times() -> Option<u64> {
    match std::env::var(VARIABLE) {
        Ok(value) if value == "full" => None,
        Ok(value) => Some(value.parse().unwrap_or(1)),
        Err(_) => Some(1),
    }
}

/// Returns whether the sweep does everything.
#[must_use]
pub fn is_full() -> bool {
    times().is_none()
}

/// Returns the divisor of a sample whose short run takes one in `usual`; 1 if the sweep does everything.
#[must_use]
pub fn one_in(usual: u64) -> u64 {
    times().map_or(1, |times| (usual / times.max(1)).max(1))
}

/// Returns the size of a sample, if a short run takes `usual` and a full one `all`.
#[must_use]
pub fn count(usual: u64, all: u64) -> u64 {
    times().map_or(all, |times| usual.saturating_mul(times).min(all))
}
