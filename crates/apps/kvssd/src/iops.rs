//! The model of operations per second of OpenMPDK's emulator, with its published parameters.
//!
//! A polynomial of degree 3 in the length of values and the shares of inserts, reads and updates, fitted to a PM983
//! with key-value firmware. It predicts thousands of operations per second from the last 16 operations. It is valid
//! where it was fitted: from values of 18,608 bytes on, it predicts fewer than zero inserts per second. Here that is an
//! error, whereas the emulator does not wait. The emulator counts deletes among the operations; the shares then do not
//! add up to 1, and the prediction is negative for nearly all values. Here deletes take the time of the others and do
//! not change the shares.

use std::collections::VecDeque;

use crate::{Error, Result};

/// The number of operations, and of lengths of values, that the prediction uses.
const WINDOW: usize = 16;

/// The longest value, in bytes, for which the prediction is positive for every mix of inserts, reads and updates.
pub const MODEL_VALUE_BYTES_MAX: u64 = 18_607;

/// The terms of the polynomial, by the powers of value length, inserts, reads and updates, without the constant.
const POWERS: [[u8; 4]; 34] = [
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
    [2, 0, 0, 0],
    [1, 1, 0, 0],
    [1, 0, 1, 0],
    [1, 0, 0, 1],
    [0, 2, 0, 0],
    [0, 1, 1, 0],
    [0, 1, 0, 1],
    [0, 0, 2, 0],
    [0, 0, 1, 1],
    [0, 0, 0, 2],
    [3, 0, 0, 0],
    [2, 1, 0, 0],
    [2, 0, 1, 0],
    [2, 0, 0, 1],
    [1, 2, 0, 0],
    [1, 1, 1, 0],
    [1, 1, 0, 1],
    [1, 0, 2, 0],
    [1, 0, 1, 1],
    [1, 0, 0, 2],
    [0, 3, 0, 0],
    [0, 2, 1, 0],
    [0, 2, 0, 1],
    [0, 1, 2, 0],
    [0, 1, 1, 1],
    [0, 1, 0, 2],
    [0, 0, 3, 0],
    [0, 0, 2, 1],
    [0, 0, 1, 2],
    [0, 0, 0, 3],
];

/// The parameters of a model: the intercept, the constant term, and a coefficient for each of the other 34 terms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IopsParameters(pub [f64; 36]);

impl Default for IopsParameters {
    /// Returns the parameters that OpenMPDK publishes.
    fn default() -> Self {
        Self([
            93.55536664,
            9.73333650e-03,
            -7.48332780e-04,
            -1.02151073e+01,
            -3.25414892e+01,
            4.27551652e+01,
            -1.37097247e-03,
            5.35734352e-04,
            6.63934171e-05,
            -5.98786540e-03,
            6.59822790e+01,
            -9.08029926e+01,
            1.46061898e+01,
            1.26562873e+01,
            4.56136757e+01,
            -1.74634825e+01,
            3.45057316e-12,
            1.37099315e-03,
            1.37105773e-03,
            1.37092722e-03,
            -7.66785198e-03,
            1.28200988e-02,
            -4.76358522e-03,
            -5.57416593e-03,
            -4.75173882e-03,
            3.58063105e-03,
            -9.87217038e+00,
            6.72385443e+01,
            8.61728612e+00,
            -1.39270618e+02,
            -1.87756101e+01,
            2.47645398e+01,
            7.51414174e+01,
            7.67858478e+01,
            -1.23967843e+01,
            -2.98320336e+01,
        ])
    }
}

/// The shares of operations, each from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OperationMix {
    /// Stores of absent keys.
    pub inserts: f64,
    /// Retrievals.
    pub reads: f64,
    /// Stores of existing keys.
    pub updates: f64,
}

impl IopsParameters {
    /// Returns the thousands of operations per second.
    ///
    /// # Errors
    /// Values longer than [`MODEL_VALUE_BYTES_MAX`], and a mix for which the polynomial is not above 0.
    pub fn kiops(&self, mix: OperationMix, value_bytes: u64) -> Result<f64> {
        let out_of_range = || Error::ModelRange { value_bytes, max: MODEL_VALUE_BYTES_MAX };
        let length = u32::try_from(value_bytes).map_err(|_| out_of_range())?;
        let kiops = self.polynomial(mix, length);
        if value_bytes > MODEL_VALUE_BYTES_MAX || kiops <= 0.0 {
            return Err(out_of_range());
        }
        Ok(kiops)
    }

    /// Returns the polynomial, as the emulator computes it: powers of the length alone in 32 bits, which wrap around.
    /// That changes the third power from 1,626 bytes on, by at most 0.015 thousand operations up to the longest
    /// accepted value.
    fn polynomial(&self, mix: OperationMix, length: u32) -> f64 {
        let [intercept, constant, coefficients @ ..] = &self.0;
        let shares = [mix.inserts, mix.reads, mix.updates];
        let term = |(coefficient, [lengths, powers @ ..]): (&f64, &[u8; 4])| {
            let length = f64::from(length.wrapping_pow(u32::from(*lengths)));
            let shares = shares.iter().zip(powers);
            shares.fold(coefficient * length, |term, (share, power)| {
                term * share.powi(i32::from(*power))
            })
        };
        intercept + constant + coefficients.iter().zip(&POWERS).map(term).sum::<f64>()
    }
}

/// An operation, in the categories of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelledOperation {
    /// A store of an absent key.
    Insert,
    /// A retrieval, or a test of whether keys exist.
    Read,
    /// A store of an existing key.
    Update,
    /// A deletion.
    Delete,
}

/// A model and the operations that it uses.
#[derive(Clone, Debug, Default)]
pub struct IopsModel {
    parameters: IopsParameters,
    operations: VecDeque<ModelledOperation>,
    lengths: VecDeque<u64>,
}

impl IopsModel {
    /// Creates a model without any operations.
    #[must_use]
    pub fn new(parameters: IopsParameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// Returns the time of one more operation on a value of `value_bytes` bytes, in nanoseconds.
    ///
    /// # Errors
    /// As [`IopsParameters::kiops`].
    pub fn next_ns(&mut self, operation: ModelledOperation, value_bytes: u64) -> Result<u64> {
        if operation != ModelledOperation::Delete {
            push(&mut self.operations, operation);
            push(&mut self.lengths, value_bytes);
        }
        let mean = self.lengths.iter().sum::<u64>() as f64 / self.lengths.len().max(1) as f64;
        let kiops = self.parameters.kiops(self.mix(), mean.round() as u64)?;
        Ok((1e6 / kiops) as u64)
    }

    fn mix(&self) -> OperationMix {
        let share = |operation| {
            let count = self.operations.iter().filter(|it| **it == operation).count();
            count as f64 / self.operations.len().max(1) as f64
        };
        match self.operations.is_empty() {
            // So far there were only deletes: they take the time of updates.
            true => OperationMix { updates: 1.0, ..OperationMix::default() },
            false => OperationMix {
                inserts: share(ModelledOperation::Insert),
                reads: share(ModelledOperation::Read),
                updates: share(ModelledOperation::Update),
            },
        }
    }
}

fn push<T>(window: &mut VecDeque<T>, item: T) {
    window.push_back(item);
    if window.len() > WINDOW {
        window.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kiops(value_bytes: u64, shares: [f64; 3]) -> Result<f64> {
        let [inserts, reads, updates] = shares;
        IopsParameters::default().kiops(OperationMix { inserts, reads, updates }, value_bytes)
    }

    /// Computed from the published parameters by another program, with the 32-bit powers of the emulator.
    #[test]
    fn the_published_parameters_give_the_emulators_rates() {
        let expected = [
            (16, [139.3, 148.7, 89.0]),
            (1024, [131.4, 142.5, 85.7]),
            (4096, [107.5, 124.6, 75.3]),
            (8192, [76.3, 103.3, 60.1]),
            (16_384, [15.9, 69.2, 25.2]),
        ];
        for (value_bytes, rates) in expected {
            let pure = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
            for (mix, rate) in pure.into_iter().zip(rates) {
                let found = kiops(value_bytes, mix).unwrap();
                assert!((found - rate).abs() < 0.051, "{value_bytes} {mix:?}: {found}");
            }
        }
    }

    #[test]
    fn each_mix_is_above_nothing_up_to_the_longest_value_and_no_longer() {
        for value_bytes in (0..MODEL_VALUE_BYTES_MAX).step_by(487).chain([MODEL_VALUE_BYTES_MAX]) {
            for inserts in 0..=16u8 {
                for reads in 0..=16 - inserts {
                    let shares = [inserts, reads, 16 - inserts - reads];
                    let mix = shares.map(|share| f64::from(share) / 16.0);
                    assert!(kiops(value_bytes, mix).unwrap() > 0.0, "{value_bytes} {mix:?}");
                }
            }
        }
        let error = kiops(MODEL_VALUE_BYTES_MAX + 1, [0.0, 1.0, 0.0]).unwrap_err();
        assert!(matches!(error, Error::ModelRange { value_bytes: 18_608, .. }), "{error}");
        let longer = IopsParameters::default();
        let mix = OperationMix { inserts: 1.0, ..OperationMix::default() };
        assert!(longer.polynomial(mix, 18_608) < 0.0);
    }

    #[test]
    fn the_window_forgets_and_deletes_leave_the_shares_alone() {
        let mut model = IopsModel::default();
        for _ in 0..WINDOW {
            model.next_ns(ModelledOperation::Insert, 4096).unwrap();
        }
        let insert_ns = model.next_ns(ModelledOperation::Insert, 4096).unwrap();
        assert_eq!(insert_ns, (1e6 / kiops(4096, [1.0, 0.0, 0.0]).unwrap()) as u64);
        assert_eq!(model.next_ns(ModelledOperation::Delete, 0).unwrap(), insert_ns);
        for _ in 0..WINDOW {
            model.next_ns(ModelledOperation::Read, 16).unwrap();
        }
        let read_ns = model.next_ns(ModelledOperation::Read, 16).unwrap();
        assert_eq!(read_ns, (1e6 / kiops(16, [0.0, 1.0, 0.0]).unwrap()) as u64);
        assert!(IopsModel::default().next_ns(ModelledOperation::Delete, 0).unwrap() > 0);
    }
}
