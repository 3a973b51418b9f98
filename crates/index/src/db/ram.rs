//! What a structure of a database may take of its RAM.

use crate::model::text::bytes;
use crate::ram::RamPool;
use crate::size::Quantity;
use crate::{Error, Result};

/// How often the RAM of a structure is halved to make its buffers fit the log.
const HALVINGS: u32 = 12;

/// What a new structure may take: what was required, or half of what is free.
pub(super) fn limit(pool: &RamPool, name: &str, asked: Option<&Quantity>) -> Result<u64> {
    let Some(asked) = asked else { return Ok(pool.usual(name)) };
    let asked = asked.bytes("ram")?;
    if asked <= pool.most(name) { Ok(asked) } else { Err(pool.refuse(name, asked)) }
}

/// Adds what others have to the refusal of a structure for its RAM, and the name to any other.
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

/// The largest result of `advise` for at most `limit` bytes that `fits`. If none does, the result for the
/// least; creating that reports what is wrong.
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
