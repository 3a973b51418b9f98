//! How much of what they could do sweeps do: one variable for all of them.

/// The variable's name. It is `full`, or how many times as much as usual is done.
const VARIABLE: &str = "NANDEX_SWEEP";

fn times() -> Option<u64> {
    match std::env::var(VARIABLE) {
        Ok(value) if value == "full" => None,
        Ok(value) => Some(value.parse().unwrap_or(1)),
        Err(_) => Some(1),
    }
}

/// Whether everything is to be done.
#[must_use]
pub fn is_full() -> bool {
    times().is_none()
}

/// Of how many one is taken, where `usual` is for a short run; 1 where everything is asked for.
#[must_use]
pub fn one_in(usual: u64) -> u64 {
    times().map_or(1, |times| (usual / times.max(1)).max(1))
}

/// How many are taken, where `usual` are for a short run and `all` where everything is asked for.
#[must_use]
pub fn count(usual: u64, all: u64) -> u64 {
    times().map_or(all, |times| usual.saturating_mul(times).min(all))
}
