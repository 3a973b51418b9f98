//! The arm, the spindle and read-ahead: the position of the head, and the time at which it has passed a page.

use super::spec::DiskSpec;
use crate::spec::HOST_PAGE_BYTES;
use crate::{Request, RequestKind};

/// Precomputed times.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadTiming {
    pub controller_ns: u64,
    pub link_page_ns: u64,
}

/// A request's use of the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Service {
    /// The time at which its last page has passed the head, now or by read-ahead; not before the request
    /// began.
    pub end_ns: u64,
    /// The time of its seek, rotation and transfer.
    pub media_ns: u64,
}

/// The read-ahead of the head after the last read.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page after the last read, and the time at which the head had reached it.
    next: u64,
    at_ns: u64,
    /// The page at which the buffer is full.
    limit: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Head {
    spec: DiskSpec,
    timing: HeadTiming,
    turn_ns: u64,
    /// The arm's cylinder after the last write or seek; a stream advances it.
    cylinder: u32,
    stream: Option<Stream>,
}

impl Head {
    pub fn new(spec: DiskSpec) -> Self {
        let timing = HeadTiming {
            controller_ns: spec.controller_ns,
            link_page_ns: (spec.link_ps_per_byte * HOST_PAGE_BYTES).div_ceil(1000),
        };
        Self { timing, turn_ns: spec.turn_ns(), cylinder: 0, stream: None, spec }
    }

    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    pub fn timing(&self) -> &HeadTiming {
        &self.timing
    }

    fn pages_per_track(&self) -> u64 {
        u64::from(self.spec.pages_per_track)
    }

    fn cylinder_of(&self, page: u64) -> u32 {
        (page / self.pages_per_track() / u64::from(self.spec.surfaces)) as u32
    }

    /// Returns the angle of the spindle where a page begins, as time since the beginning of a turn. Pages
    /// after the last of a track are counted as if the track continued.
    fn angle_ns(&self, track: u64, in_track: u64) -> u64 {
        (track * self.spec.seek_track_ns + in_track * self.turn_ns / self.pages_per_track())
            % self.turn_ns
    }

    /// Returns the time of the head from the beginning of one page to that of a later one, without a stop.
    fn pass_ns(&self, from: u64, to: u64) -> u64 {
        let per_track = self.pages_per_track();
        let turned = |page: u64| page % per_track * self.turn_ns / per_track;
        let tracks = to / per_track - from / per_track;
        // Before each later track the head changes while the spindle continues to turn.
        let whole = tracks * (self.turn_ns + self.spec.seek_track_ns) + turned(to);
        whole - turned(from)
    }

    /// Returns the time of the head from the beginning of a page to the end of the last one before another.
    fn transfer_ns(&self, from: u64, end: u64) -> u64 {
        let (per_track, last) = (self.pages_per_track(), (end - 1) % self.pages_per_track());
        let page_ns = (last + 1) * self.turn_ns / per_track - last * self.turn_ns / per_track;
        self.pass_ns(from, end - 1) + page_ns
    }

    /// Returns the arm's cylinder at a time: after the last request, or as far as read-ahead has come.
    fn cylinder_at(&self, now_ns: u64) -> u32 {
        let Some(stream) = self.stream else { return self.cylinder };
        let elapsed = now_ns.saturating_sub(stream.at_ns);
        let track_ns = self.turn_ns + self.spec.seek_track_ns;
        let tracks = elapsed / track_ns;
        let rest = (elapsed % track_ns * self.pages_per_track() / track_ns).max(1);
        let page = stream.next + tracks * self.pages_per_track() + rest;
        self.cylinder_of(page.min(stream.limit.max(stream.next)) - 1)
    }

    /// Returns the earliest time at which the head, starting at `from_ns`, is at the beginning of a page.
    fn arrival_ns(&self, page: u64, from_ns: u64) -> u64 {
        let seek = self.spec.seek_ns(self.cylinder_at(from_ns).abs_diff(self.cylinder_of(page)));
        let there = from_ns + seek;
        let per_track = self.pages_per_track();
        let target = self.angle_ns(page / per_track, page % per_track);
        let angle = there % self.turn_ns;
        there + (target + self.turn_ns - angle) % self.turn_ns
    }

    /// Returns the time until a request's first page is under the head or in the buffer.
    pub fn reach_ns(&self, request: &Request, now_ns: u64) -> u64 {
        match request.kind {
            RequestKind::Read if self.streams_to(request, now_ns).is_some() => 0,
            RequestKind::Read | RequestKind::Write => {
                self.arrival_ns(request.page, now_ns) - now_ns
            }
            RequestKind::Discard | RequestKind::Sync => 0,
        }
    }

    /// Returns the time at which the head reaches the end of a read that continues the last one.
    fn streams_to(&self, request: &Request, now_ns: u64) -> Option<u64> {
        let stream = self.stream.filter(|stream| stream.next == request.page)?;
        let end = request.page + u64::from(request.pages);
        (!self.is_full(&stream, now_ns) || end <= stream.limit)
            .then(|| stream.at_ns + self.transfer_ns(stream.next, end))
    }

    /// Returns whether read-ahead has filled the buffer, so that the head has stopped.
    fn is_full(&self, stream: &Stream, now_ns: u64) -> bool {
        now_ns >= stream.at_ns + self.pass_ns(stream.next, stream.limit)
    }

    /// Serves a read or a write from `start_ns` on.
    pub fn serve(&mut self, request: &Request, start_ns: u64) -> Service {
        let end_page = request.page + u64::from(request.pages);
        let streamed = match request.kind {
            RequestKind::Read => self.streams_to(request, start_ns),
            _ => None,
        };
        let end_ns = match (streamed, self.stream) {
            (Some(passed_ns), Some(stream)) => {
                // Once the buffer is full the head stays where it stopped.
                let is_full = self.is_full(&stream, start_ns);
                let limit = if is_full { stream.limit } else { self.limit(end_page) };
                let at_ns = stream.at_ns + self.pass_ns(stream.next, end_page);
                self.stream = Some(Stream { next: end_page, at_ns, limit });
                passed_ns.max(start_ns)
            }
            _ => self.begin(request, end_page, start_ns),
        };
        Service { end_ns, media_ns: end_ns - start_ns }
    }

    /// Moves the head to a request and lets its pages pass; returns the time at which the last one has
    /// passed.
    fn begin(&mut self, request: &Request, end_page: u64, start_ns: u64) -> u64 {
        let arrival = self.arrival_ns(request.page, start_ns);
        self.cylinder = self.cylinder_of(end_page - 1);
        self.stream = (request.kind == RequestKind::Read).then(|| Stream {
            next: end_page,
            at_ns: arrival + self.pass_ns(request.page, end_page),
            limit: self.limit(end_page),
        });
        arrival + self.transfer_ns(request.page, end_page)
    }

    /// Returns the page at which read-ahead from `next` on stops.
    fn limit(&self, next: u64) -> u64 {
        (next + self.spec.buffer_bytes / HOST_PAGE_BYTES).min(self.spec.page_count())
    }
}
