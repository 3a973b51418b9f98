//! Loops of arithmetic with the widest vectors that the processor has.
//!
//! Programs are built for any x86-64, whose vectors have 128 bits and cannot multiply or compare all widths of numbers.
//! A loop that profits is compiled twice, and the program checks when it runs.

/// A loop that the compiler can turn into vector instructions.
pub trait VectorLoop {
    /// The result of the loop.
    type Output;

    /// Runs the loop. Mark it `#[inline(always)]`, and what it calls: only inlined code gets the wide vectors.
    fn run(self) -> Self::Output;
}

/// Runs a loop, compiled for AVX2 if the processor has it. Costs a check of the detected features, about a nanosecond.
///
/// ```
/// use nandex_device::{VectorLoop, run_in_vectors};
///
/// struct Sum<'n>(&'n [u32]);
///
/// impl VectorLoop for Sum<'_> {
///     type Output = u32;
///
///     #[inline(always)]
///     fn run(self) -> u32 {
///         self.0.iter().fold(0, |sum, number| sum.wrapping_add(number.wrapping_mul(*number)))
///     }
/// }
///
/// assert_eq!(run_in_vectors(Sum(&[1, 2, 3])), 14);
/// ```
#[inline]
pub fn run_in_vectors<L: VectorLoop>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function requires.
        return unsafe { run_in_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_in_avx2<L: VectorLoop>(work: L) -> L::Output {
    work.run()
}
