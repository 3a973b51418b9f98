//! The presets that are built in.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// The names and texts of the built-in presets, in the order of the documentation.
        pub(super) const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../presets/", $name, ".toml")))),*];
    };
}

presets![
    "intel-x18m",
    "intel-x18m-paper",
    "intel-x25m",
    "flash-chip",
    "flash-chip-paper",
    "transcend-ts32",
    "transcend-ts32-paper",
    "crucial-m4",
    "crucial-m4-paper",
    "mlc-1",
    "mlc-1-paper",
    "mlc-2",
    "mlc-2-paper",
    "slc",
    "slc-paper",
    "pm983",
    "nvme-970pro",
    "modern-nvme",
    "disk-7200",
    "deskstar-7k80",
];
