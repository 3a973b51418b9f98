//! The costs that the formulas of NSDI 2010 are computed with, by name.

use nandex::raw::model::{CostPreset, FlashCosts, Linear, Medium};

use crate::Result;

/// A buffer of the paper: the bytes of a write whose time it prints.
const BUFFER_BYTES: f64 = 128.0 * 1024.0;

/// A cost of a preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CostField {
    /// A read of a page.
    Read,
    /// A write: of a page on a chip, of a buffer on an SSD.
    Write,
    /// A byte of a long write.
    WriteByte,
    /// An erase of a block on a chip, what an erase adds to a write on an SSD.
    Erase,
}

impl CostField {
    /// Returns its unit.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::WriteByte => "ns/B",
            Self::Read | Self::Write | Self::Erase => "ns",
        }
    }

    /// Returns its value, rounded to a thousandth.
    pub(crate) fn value(self, costs: &FlashCosts) -> f64 {
        let is_chip = costs.medium == Medium::Chip;
        let value = match self {
            Self::Read => costs.page_read_ns(),
            Self::Write => costs.write.ns(if is_chip { costs.page_bytes } else { BUFFER_BYTES }),
            Self::WriteByte => costs.write.byte_ns,
            Self::Erase => costs.erase.ns(if is_chip { costs.block_bytes } else { 0.0 }),
        };
        (value * 1e3).round() / 1e3
    }

    /// Multiplies it by a factor.
    pub(crate) fn change(self, costs: &mut FlashCosts, factor: f64) {
        let times = |cost: &mut Linear| {
            cost.fixed_ns *= factor;
            cost.byte_ns *= factor;
        };
        match self {
            Self::Read => times(&mut costs.read),
            Self::Write => times(&mut costs.write),
            Self::WriteByte => costs.write.byte_ns *= factor,
            Self::Erase => times(&mut costs.erase),
        }
    }
}

/// Returns the costs of a preset of the cost model.
///
/// # Errors
/// Fails if there is no such preset.
pub(crate) fn preset(name: &'static str) -> Result<FlashCosts> {
    Ok(CostPreset::by_name(name)?.costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_printed_one_and_a_factor_changes_it_alone() {
        let mut costs = preset("intel-x18m").unwrap();
        let all = [CostField::Read, CostField::Write, CostField::Erase];
        assert_eq!(all.map(|field| field.value(&costs)), [150_000.0, 830_000.0, 1_890_000.0]);
        CostField::Erase.change(&mut costs, 2.0);
        assert_eq!(all.map(|field| field.value(&costs)), [150_000.0, 830_000.0, 3_780_000.0]);
        assert_eq!(CostField::Read.value(&preset("flash-chip").unwrap()), 240_000.0);
    }
}
