//! Chosen constants that are varied, and drives that are replaced, while an experiment runs.
//!
//! An experiment runs on one thread, so a change holds on that thread until the run ends. The constants that
//! the experiment used are recorded, so that no other constant is varied.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use nandex::raw::model::FlashCosts;
use nandex_sim::preset::{Machine, Preset, PresetError};
use nandex_sim::spec::FtlKind;

use crate::fits::{Field, Fit, Place, cost_preset, fits};

/// A change from the experiment's own constants and drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Variation {
    /// No change.
    #[default]
    Nothing,
    /// A change of the constant of this name.
    Constant(&'static str, By),
    /// A change of every SSD to the one of this preset.
    Drive(&'static str),
}

/// The variation of a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// Halved.
    Half,
    /// Doubled.
    Double,
}

thread_local! {
    static CHANGE: Cell<Variation> = const { Cell::new(Variation::Nothing) };
    static USED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

impl By {
    /// All variations.
    pub(crate) const BOTH: [Self; 2] = [Self::Half, Self::Double];

    /// Returns the factor.
    pub(crate) const fn factor(self) -> f64 {
        match self {
            Self::Half => 0.5,
            Self::Double => 2.0,
        }
    }

    /// Returns it in a word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Half => "halved",
            Self::Double => "doubled",
        }
    }

    const fn of(self, value: u64) -> u64 {
        match self {
            Self::Half => value / 2,
            Self::Double => value * 2,
        }
    }
}

/// A guard that ends a change, also if the run panics.
struct Restored(Variation);

impl Drop for Restored {
    fn drop(&mut self) {
        CHANGE.set(self.0);
    }
}

/// Runs something under a change, and returns its result and the constants that it used.
pub(crate) fn during<R>(change: Variation, run: impl FnOnce() -> R) -> (R, BTreeSet<&'static str>) {
    let _restored = Restored(CHANGE.replace(change));
    let earlier = USED.take();
    let outcome = run();
    (outcome, USED.replace(earlier))
}

/// Returns a number of the code at present; `value` is the one without a change.
pub(crate) fn number(fit: &Fit, value: f64) -> f64 {
    value * factor(fit)
}

/// Returns the costs of a preset of the cost model at present, with its varied constant.
///
/// # Errors
/// Fails if there is no such preset.
pub(crate) fn costs(name: &'static str) -> crate::Result<FlashCosts> {
    let mut costs = cost_preset(name)?;
    for fit in fits() {
        if let Place::Cost(of, field) = fit.place
            && of == name
        {
            field.change(&mut costs, factor(fit));
        }
    }
    Ok(costs)
}

/// Returns the present factor of a constant.
pub(crate) fn factor(fit: &Fit) -> f64 {
    varied_by(fit).map_or(1.0, By::factor)
}

/// Returns a constant of the code at present; `value` is the one without a change.
pub(crate) fn value(fit: &Fit, value: u64) -> u64 {
    varied_by(fit).map_or(value, |by| by.of(value))
}

fn varied_by(fit: &Fit) -> Option<By> {
    USED.with_borrow_mut(|used| used.insert(fit.name));
    match CHANGE.get() {
        Variation::Constant(name, by) if name == fit.name => Some(by),
        _ => None,
    }
}

/// Returns the preset that replaces this one at present. Disks and raw chips stay unchanged.
///
/// # Errors
/// Fails with [`PresetError::Unknown`].
pub(crate) fn preset(name: &'static str) -> Result<Preset, PresetError> {
    let own = Preset::named(name)?;
    match (CHANGE.get(), own.machine()) {
        (Variation::Drive(other), Machine::Ssd(spec)) if spec.ftl.kind != FtlKind::Raw => {
            Preset::named(other)
        }
        _ => Ok(own),
    }
}

/// Returns the description of a preset at present, with its varied constant.
///
/// # Errors
/// Fails as [`preset`] does.
pub(crate) fn machine(name: &'static str) -> Result<Machine, PresetError> {
    let mut machine = preset(name)?.machine().clone();
    for fit in fits() {
        let Place::Preset(of, field) = fit.place else { continue };
        if of == name
            && let Some(by) = varied_by(fit)
        {
            change(&mut machine, field, by);
        }
    }
    Ok(machine)
}

fn change(machine: &mut Machine, field: Field, by: By) {
    match machine {
        Machine::Ssd(spec) => field.change(spec, |value| by.of(value)),
        Machine::Disk(spec) => field.change_disk(spec, |value| by.of(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::NSDI_PROCESSOR;

    fn erase_ns() -> u64 {
        match machine("intel-x18m-paper").unwrap() {
            Machine::Ssd(spec) => spec.timing.erase_ns,
            _ => 0,
        }
    }

    #[test]
    fn a_change_holds_while_it_should_and_what_was_asked_for_is_noted() {
        let double = Variation::Constant("intel-erase", By::Double);
        let (inside, used) = during(double, || (erase_ns(), value(&NSDI_PROCESSOR, 10)));
        assert_eq!(inside, (2 * 1_890_000, 10));
        let wanted =
            ["intel-erase", "intel-program", "intel-read", "intel-transfer", "nsdi-processor"];
        assert!(used.iter().eq(wanted.iter()), "{used:?}");
        assert_eq!(erase_ns(), 1_890_000);
        let half = Variation::Constant("nsdi-processor", By::Half);
        assert_eq!(during(half, || value(&NSDI_PROCESSOR, 10)).0, 5);
        assert_eq!(during(half, || factor(&NSDI_PROCESSOR)).0, 0.5);
    }

    #[test]
    fn an_ssd_is_replaced_and_neither_a_disk_nor_a_chip_is() {
        let replaced = |name| {
            during(Variation::Drive("pm983"), || {
                preset(name).unwrap() == Preset::named("pm983").unwrap()
            })
            .0
        };
        assert!(replaced("intel-x18m-paper") && replaced("crucial-m4-paper"));
        assert!(!replaced("deskstar-7k80") && !replaced("flash-chip-paper"));
    }
}
