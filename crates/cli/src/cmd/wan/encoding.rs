//! How a stream is cut and compressed.

use anyhow::Result;
use nandex_dedup::Chunker;
use nandex_wan::EncodeOptions;

use crate::size;

/// The choices of whoever encodes; whoever decodes needs none.
#[derive(Debug, clap::Args)]
pub struct EncodeArgs {
    /// The average chunk, a power of two from 1KiB to 64KiB; streams find each other's chunks only if cut alike
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    avg: Option<u64>,
    /// How the stream is cut: fastcdc, rabin or fixed
    #[arg(long)]
    chunker: Option<Chunker>,
    /// The level of zstd for what is new, 1 to 19
    #[arg(long, value_name = "N")]
    level: Option<i32>,
}

impl EncodeArgs {
    /// The options.
    ///
    /// # Errors
    /// A chunk that is longer than any memory.
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
