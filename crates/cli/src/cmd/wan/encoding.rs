//! The chunking and compression of a stream.

use anyhow::Result;
use nandex_dedup::Chunker;
use nandex_wan::EncodeOptions;

use crate::size;

/// The options of an encoder; a decoder needs none.
#[derive(Debug, clap::Args)]
pub struct EncodeArgs {
    /// Average chunk, a power of two from 1KiB to 64KiB; streams find each other's chunks only if they are cut alike
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    avg: Option<u64>,
    /// Chunking of the stream: fastcdc, rabin or fixed
    #[arg(long)]
    chunker: Option<Chunker>,
    /// Level of zstd for new content, 1 to 19
    #[arg(long, value_name = "N")]
    level: Option<i32>,
}

impl EncodeArgs {
    /// Returns the options.
    ///
    /// # Errors
    /// A chunk that exceeds the address space.
    pub fn options(&self) -> Result<EncodeOptions> {
        let usual = EncodeOptions::default();
        let average = self.avg.map(usize::try_from).transpose()?;
        Ok(EncodeOptions {
            chunker: self.chunker.unwrap_or(usual.chunker),
            chunk_bytes: average.unwrap_or(usual.chunk_bytes),
            level: self.level.unwrap_or(usual.level),
            ..usual
        })
    }
}
