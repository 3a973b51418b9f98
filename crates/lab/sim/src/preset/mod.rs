//! Presets: simulated devices by name, and from files in the same format.
//!
//! A preset is a TOML file with a `kind`, a `name`, an `about`, and every field of that kind's description by
//! its own name: there are no defaults. The files under `presets/` are built in. If a paper prints
//! measurements of a drive, its preset comes in two: `crucial-m4` is fitted to the drive's data sheet,
//! `crucial-m4-paper` gives the paper's figures.
//!
//! ```
//! use nandex_sim::preset::Preset;
//! use nandex_sim::{Fill, Model};
//!
//! let preset = Preset::named("crucial-m4-paper")?;
//! assert_eq!(preset.geometry().channels, Some(32));
//! let model = preset.build(Fill::Sequential)?;
//! assert!(model.page_count() > 30_000_000);
//! # Ok::<(), nandex_sim::preset::PresetError>(())
//! ```

mod built_in;
mod error;
mod file;
mod geometry;
mod locate;

use std::path::Path;

pub use error::PresetError;

use crate::disk::{Disk, DiskSpec};
use crate::{Fill, Model, Spec, Ssd};

/// The result of reading or building a preset.
pub type Result<T> = std::result::Result<T, PresetError>;

/// The device that a preset describes.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Machine {
    /// `kind = "ssd"`: an SSD of the general engine, or a raw chip.
    Ssd(Spec),
    /// `kind = "disk"`: a magnetic disk.
    Disk(DiskSpec),
}

/// A simulated device that can be built. See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    machine: Machine,
}

impl Preset {
    /// Returns the names of the built-in presets, in the order of the documentation.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        built_in::ALL.iter().map(|(name, _)| *name)
    }

    /// Returns a built-in preset.
    ///
    /// # Errors
    /// Fails with [`PresetError::Unknown`], with the known names.
    pub fn named(name: &str) -> Result<Self> {
        let Some((_, text)) = built_in::ALL.iter().find(|(known, _)| *known == name) else {
            let names = Self::names().collect::<Vec<_>>().join(", ");
            return Err(PresetError::Unknown { name: name.to_owned(), names });
        };
        Self::parse(text, name)
    }

    /// Returns the text of a built-in preset, as a start for a user's own file.
    #[must_use]
    pub fn text(name: &str) -> Option<&'static str> {
        built_in::ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads the preset in a file.
    ///
    /// # Errors
    /// Fails with [`PresetError::Read`] if the file cannot be read, else as [`from_toml`](Self::from_toml)
    /// does.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let origin = path.as_ref().display().to_string();
        let text = std::fs::read_to_string(path.as_ref())
            .map_err(|source| PresetError::Read { path: origin.clone(), source })?;
        Self::parse(&text, &origin)
    }

    /// Reads the preset in a text.
    ///
    /// # Errors
    /// Fails with [`PresetError::Field`] or [`PresetError::Syntax`] for the first error, with its line, the
    /// expected and found values, and the remedy.
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::parse(text, "the text")
    }

    fn parse(text: &str, origin: &str) -> Result<Self> {
        let machine = file::parse(text, origin)?;
        machine.check().map_err(|wrong| error::impossible(&wrong, text, origin))?;
        Ok(Self { machine })
    }

    /// Returns the preset as the text of a file, without comments.
    ///
    /// # Errors
    /// Fails with [`PresetError::Write`] if a number is larger than TOML's maximum (2^63 - 1).
    pub fn to_toml(&self) -> Result<String> {
        file::write(&self.machine)
    }

    /// Returns its name, as in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.machine {
            Machine::Ssd(spec) => &spec.name,
            Machine::Disk(spec) => &spec.name,
        }
    }

    /// Returns the modelled device and the sources of the numbers.
    #[must_use]
    pub fn about(&self) -> &str {
        match &self.machine {
            Machine::Ssd(spec) => &spec.about,
            Machine::Disk(spec) => &spec.about,
        }
    }

    /// Returns the described device, field by field.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Creates a device of this kind with this content, which makes no difference for a disk.
    ///
    /// # Errors
    /// Fails with [`PresetError::Machine`] if no such device can exist.
    pub fn build(&self, fill: Fill) -> Result<Box<dyn Model>> {
        Ok(match &self.machine {
            Machine::Ssd(spec) => Box::new(Ssd::new(spec.clone(), fill)?),
            Machine::Disk(spec) => Box::new(Disk::new(spec.clone())?),
        })
    }

    /// Creates the device as an SSD, which can report its work.
    ///
    /// # Errors
    /// Fails with [`PresetError::NotSsd`] if it is not one.
    pub fn ssd(&self, fill: Fill) -> Result<Ssd> {
        match &self.machine {
            Machine::Ssd(spec) => Ok(Ssd::new(spec.clone(), fill)?),
            _ => Err(PresetError::NotSsd { name: self.name().to_owned() }),
        }
    }
}

impl Machine {
    fn check(&self) -> crate::Result<()> {
        match self {
            Self::Ssd(spec) => spec.check(),
            Self::Disk(spec) => spec.check(),
        }
    }
}
