//! Opens filters for the verbs.

use anyhow::Result;
use nandex::Durability;

use super::kind::KeyFilter;
use crate::devices::VolumeArgs;
use crate::held;
use crate::stated::StatedArgs;

/// The filter of a volume.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NameArgs {
    /// Name of the filter; not needed if the volume holds one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    options: StatedArgs,
}

/// An open volume and one of its filters.
pub type Opened = held::Opened<KeyFilter>;

/// Opens a volume and the named filter, or the only one.
///
/// # Errors
/// A file that does not exist, is not a volume, is in use or damaged; a name that does not exist or belongs to a table.
pub fn open(args: &VolumeArgs, name: &NameArgs, durability: Durability) -> Result<Opened> {
    held::open(args, name.name.as_deref(), &name.options.stated(), durability)
}

/// Like `open`, for looking keys up: the volume stays as it is.
///
/// # Errors
/// As `open`.
pub fn open_to_read(args: &VolumeArgs, name: &NameArgs) -> Result<Opened> {
    held::open_to_read(args, name.name.as_deref(), &name.options.stated())
}
