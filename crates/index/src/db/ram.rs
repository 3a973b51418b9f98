//! The share of a database's RAM that one structure may take.

use crate::model::text::bytes;
use crate::ram::RamPool;
use crate::size::Quantity;
use crate::{Error, Result};

/// The number of times that the RAM of a structure is halved to make its buffers fit the log.
const HALVINGS: u32 = 12;

/// Returns the RAM that a new structure may take: what was required, or half of what is free.
pub(super) fn limit(pool: &RamPool, name: &str, asked: Option<&Quantity>) -> Result<u64> {
    let Some(asked) = asked else { return Ok(pool.usual(name)) };
    let asked = asked.bytes("ram")?;
    if asked <= pool.most(name) { Ok(asked) } else { Err(pool.refuse(name, asked)) }
}

/// Adds the RAM of the other structures to an error about RAM, and the structure's name to any other error.
pub(super) fn explain(pool: &RamPool, name: &str, limit: u64, error: Error) -> Error {
    let error = match error {
        Error::Config { field, reason }
        | Error::Store(nandex_store::Error::Config { field, reason }) => {
            return Error::Config { field, reason: format!("{name:?}: {reason}") };
        }
        Error::TooLittleRam { .. } => error,
        other => return other,
    };
    let reason = format!(
        "{name:?} may take {} of {} ({}), which is too little: {error}; state more with \
         nandex::options().ram(...), or give it more with `ram`",
        bytes(limit),
        bytes(pool.bytes()),
        pool.whose()
    );
    Error::TooLittleRam { field: "ram", reason }
}

/// Returns the largest result of `advise` for at most `limit` bytes that `fits`. If none does, returns the result for
/// the least RAM; creating that reports what is wrong.
pub(super) fn fitting<C>(
    limit: u64,
    advise: impl Fn(u64) -> Result<C>,
    fits: impl Fn(&C) -> bool,
) -> Result<C> {
    let mut best = advise(limit)?;
    for halving in 1..=HALVINGS {
        if fits(&best) {
            break;
        }
        let Ok(smaller) = advise(limit >> halving) else { break };
        best = smaller;
    }
    Ok(best)
}
