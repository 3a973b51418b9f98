//! Arithmetic of places: domains, planes, blocks, pages.

use crate::spec::{Level, Spec};

/// Sizes of an SSD in host pages, as the mapping needs them.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Planes of each domain, domain by domain in the order in which chunks take them.
    planes_of: Vec<Vec<u32>>,
    /// The domain of each plane, and the plane's index in it.
    domain_of: Vec<(u32, u32)>,
    pub chunk_units: u32,
    pub page_units: u32,
    pub block_units: u32,
    pub blocks: u32,
    /// Host pages of the device.
    pub units: u64,
}

impl Layout {
    pub fn new(spec: &Spec) -> Self {
        let flash = &spec.flash;
        let domains = flash.count(spec.ftl.domain);
        let mut planes_of = vec![Vec::new(); domains as usize];
        let mut domain_of = vec![(0, 0); flash.plane_count() as usize];
        for plane in 0..flash.plane_count() {
            let domain = Self::domain(spec, plane);
            let planes = &mut planes_of[domain as usize];
            domain_of[plane as usize] = (domain, planes.len() as u32);
            planes.push(plane);
        }
        Self {
            planes_of,
            domain_of,
            chunk_units: spec.ftl.chunk_bytes / crate::spec::HOST_PAGE_BYTES as u32,
            page_units: flash.page_units(),
            block_units: spec.block_units(),
            blocks: flash.blocks,
            units: spec.page_count(),
        }
    }

    /// Returns the domain of a plane: neighbouring domains are on different channels, then in different
    /// packages, dies and planes.
    fn domain(spec: &Spec, plane: u32) -> u32 {
        let flash = &spec.flash;
        let (rest, on_die) = (plane / flash.planes, plane % flash.planes);
        let (rest, die) = (rest / flash.dies, rest % flash.dies);
        let (channel, package) = (rest / flash.packages, rest % flash.packages);
        let mut domain = 0;
        if spec.ftl.domain >= Level::Plane {
            domain = on_die;
        }
        if spec.ftl.domain >= Level::Die {
            domain = domain * flash.dies + die;
        }
        if spec.ftl.domain >= Level::Package {
            domain = domain * flash.packages + package;
        }
        domain * flash.channels + channel
    }

    pub fn domains(&self) -> u32 {
        self.planes_of.len() as u32
    }

    pub fn planes(&self) -> u32 {
        self.domain_of.len() as u32
    }

    pub fn planes_of(&self, domain: u32) -> &[u32] {
        &self.planes_of[domain as usize]
    }

    /// Returns the domain of a plane, and the plane's index in it.
    pub fn domain_of(&self, plane: u32) -> (u32, u32) {
        self.domain_of[plane as usize]
    }

    /// Returns the domain of a host page by its address, and the page's index in it.
    pub fn index_in_domain(&self, unit: u32) -> (u32, u32) {
        let (chunk, offset) = (unit / self.chunk_units, unit % self.chunk_units);
        (chunk % self.domains(), chunk / self.domains() * self.chunk_units + offset)
    }

    /// Returns the host page with this index in a domain.
    pub fn unit_of(&self, domain: u32, index: u32) -> u32 {
        let chunk = index / self.chunk_units * self.domains() + domain;
        chunk * self.chunk_units + index % self.chunk_units
    }

    /// Returns the plane of a host page if all are written in order, and the number of pages before it.
    pub fn rank_in_plane(&self, unit: u32) -> (u32, u32) {
        let (domain, index) = self.index_in_domain(unit);
        let planes = self.planes_of(domain);
        let (page, in_page) = (index / self.page_units, index % self.page_units);
        let count = planes.len() as u32;
        (planes[(page % count) as usize], page / count * self.page_units + in_page)
    }

    /// Returns the host page at this place if all are written in order.
    pub fn unit_at_rank(&self, plane: u32, rank: u32) -> u32 {
        let (domain, which) = self.domain_of(plane);
        let count = self.planes_of(domain).len() as u32;
        let page = rank / self.page_units * count + which;
        self.unit_of(domain, page * self.page_units + rank % self.page_units)
    }

    /// Returns the host pages in the blocks of a plane.
    pub fn plane_units(&self) -> u32 {
        self.blocks * self.block_units
    }

    /// Returns the number of a block, counted over the whole device.
    pub fn block(&self, plane: u32, block: u32) -> u32 {
        plane * self.blocks + block
    }

    /// Returns the plane of a physical place.
    pub fn plane_of_place(&self, place: u32) -> u32 {
        place / self.plane_units()
    }

    /// Returns the block, counted over the whole device, of a physical place.
    pub fn block_of_place(&self, place: u32) -> u32 {
        place / self.block_units
    }
}
