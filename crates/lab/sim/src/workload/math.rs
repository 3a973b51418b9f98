//! Logarithm and exponential from IEEE additions, multiplications and divisions alone.
//!
//! The functions of a platform may differ in the last bit, and one bit can move a request to another page.

/// The high part of ln 2, split so that a multiple of it by an exponent is exact.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Returns the natural logarithm of a positive normal number, within 2 units in the last place.
#[must_use]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 (s + s^3/3 + s^5/5 + ...), and s is at most 0.172, so 12 terms reach 1e-19.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in (0..12).rev().map(|k| f64::from(2 * k + 1)) {
        sum = sum * square + 1.0 / odd;
    }
    let exponent = f64::from(exponent);
    exponent * LN2_HIGH + (exponent * LN2_LOW + 2.0 * s * sum)
}

/// Returns e to the power `x`, for results that are normal numbers; smaller ones become 0, larger ones
/// infinite.
pub(super) fn exp(x: f64) -> f64 {
    let power = (x * std::f64::consts::LOG2_E).round();
    if power < -1021.0 {
        return 0.0;
    }
    if power > 1022.0 {
        return f64::INFINITY;
    }
    // The rest is at most ln 2 / 2, so 16 terms of its series reach 1e-19.
    let rest = (x - power * LN2_HIGH) - power * LN2_LOW;
    let mut sum = 1.0;
    for k in (1..16).rev() {
        sum = 1.0 + sum * rest / f64::from(k);
    }
    sum * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_agree_with_the_platform_to_a_few_units_in_the_last_place() {
        for step in 1..4000 {
            let x = f64::from(step) * 0.013 + f64::from(step).powi(4) * 1e-3;
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(0.1), "ln {x}");
            let y = f64::from(step - 2000) * 0.1;
            assert!((exp(y) / y.exp() - 1.0).abs() < 4e-14, "exp {y}");
        }
    }

    #[test]
    fn ends_of_the_range_are_met() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
    }
}
