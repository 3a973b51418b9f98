//! The request selection algorithm of ANCS'14, section 5.2, as in the paper, against which the schedule is tested.

/// Returns the requests of a batch to start together, in the order in which they are chosen.
///
/// `channels` has the channel of each request in the order of arrival. Passes over them choose requests, each pass at
/// most one of each channel, until `depth` are chosen or none remains. So no channel gets a second one before each
/// channel with requests has got its first. The rest remains for the next call, with the oldest request, which every
/// call chooses, in front.
///
/// Each pass takes the length of the batch. A [`Schedule`](super::Schedule) of one level chooses the same
/// requests in the same order in logarithmic time each, and works across batches.
///
/// # Panics
/// If a channel is not below `channel_count`.
pub(super) fn select(channels: &[u32], channel_count: u32, depth: usize) -> Vec<usize> {
    let wanted = depth.min(channels.len());
    let mut selected = Vec::with_capacity(wanted);
    let mut is_selected = vec![false; channels.len()];
    while selected.len() < wanted {
        let mut is_taken = vec![false; channel_count as usize];
        for (request, channel) in channels.iter().enumerate() {
            if selected.len() == wanted {
                break;
            }
            let is_taken = &mut is_taken[*channel as usize];
            if !is_selected[request] && !*is_taken {
                (is_selected[request], *is_taken) = (true, true);
                selected.push(request);
            }
        }
    }
    selected
}
