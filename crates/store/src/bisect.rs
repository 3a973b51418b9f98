//! Bisection: the least number that works, where all larger numbers work too.

/// Returns the least number that works. `too_few` does not work, and `enough` does.
pub fn least_between(mut too_few: u64, mut enough: u64, mut works: impl FnMut(u64) -> bool) -> u64 {
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        *(if works(middle) { &mut enough } else { &mut too_few }) = middle;
    }
    enough
}

/// Returns the least number above `too_few` that works. Tries `first`, and doubles it up to at most `most`; `None` if
/// none of these works.
pub fn least_up_to(
    mut too_few: u64,
    first: u64,
    most: u64,
    mut works: impl FnMut(u64) -> bool,
) -> Option<u64> {
    let mut enough = first;
    while !works(enough) {
        let next = enough.checked_mul(2).filter(|next| *next <= most)?;
        (too_few, enough) = (enough, next);
    }
    Some(least_between(too_few, enough, works))
}

#[cfg(test)]
mod tests {
    use super::{least_between, least_up_to};

    #[test]
    fn the_least_number_that_works_is_found() {
        for least in 1..70 {
            assert_eq!(least_between(0, 70, |number| number >= least), least);
            assert_eq!(least_up_to(0, 1, 128, |number| number >= least), Some(least));
        }
        assert_eq!(least_up_to(0, 1, 64, |number| number >= 65), None);
        assert_eq!(least_up_to(7, 8, u64::MAX, |_| false), None);
    }
}
