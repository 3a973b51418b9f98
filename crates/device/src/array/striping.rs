//! The mapping of an array's pages to members: arithmetic only.

use std::ops::Range;

use crate::PageId;

/// The distribution of an array's pages over its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Striping {
    /// Runs of this number of pages go to the members in turn, so every caller gets the whole bandwidth.
    Extent {
        /// Pages in a run.
        pages: u64,
    },
    /// Member `i` holds the pages from `i * pages` up to `(i + 1) * pages`, so that the caller decides which member
    /// does which work.
    Partition {
        /// Pages of each member.
        pages: u64,
    },
}

/// A run of pages on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub member: usize,
    /// The first page, in the member's numbering.
    pub page: PageId,
    /// The number of pages from there on that are on this member without a gap in the array.
    pub run: u64,
}

/// The striping over a number of members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub striping: Striping,
    pub members: usize,
    /// The number of pages at the start of each member that the array does not use.
    pub first: u64,
}

impl Layout {
    pub(super) fn stripe_pages(self) -> u64 {
        match self.striping {
            Striping::Extent { pages } | Striping::Partition { pages } => pages,
        }
    }

    /// The most pages that the array can have, whatever the size of its members.
    pub(super) fn page_count_max(self) -> u64 {
        match self.striping {
            Striping::Extent { .. } => u64::MAX,
            Striping::Partition { pages } => pages.saturating_mul(self.members as u64),
        }
    }

    /// Returns the place of a page of the array.
    pub(super) fn place(self, page: PageId) -> Place {
        let members = self.members as u64;
        let (pages, stripe) = (self.stripe_pages(), page.0 / self.stripe_pages());
        let within = page.0 % pages;
        let (member, row) = match self.striping {
            Striping::Extent { .. } => (stripe % members, stripe / members),
            Striping::Partition { .. } => (stripe, 0),
        };
        let member = usize::try_from(member).expect("fewer than the members");
        // A single member has no borders.
        let run = if members == 1 { u64::MAX - page.0 } else { pages - within };
        Place { member, page: PageId(self.first + row * pages + within), run }
    }

    /// Returns the page of the array for a member's page: the inverse of `place`.
    pub(super) fn array_page(self, member: usize, page: PageId) -> PageId {
        let (pages, member, page) = (self.stripe_pages(), member as u64, page.0 - self.first);
        PageId(match self.striping {
            Striping::Extent { .. } => {
                let (row, within) = (page / pages, page % pages);
                (row * self.members as u64 + member) * pages + within
            }
            Striping::Partition { .. } => member * pages + page,
        })
    }

    /// Returns the number of the first `page_count` pages of the array that are on this member. They are the member's
    /// pages from `first` on.
    pub(super) fn share(self, member: usize, page_count: u64) -> u64 {
        let (pages, member) = (self.stripe_pages(), member as u64);
        let (whole, rest) = match self.striping {
            Striping::Extent { .. } => {
                let stripes = page_count / pages;
                let members = self.members as u64;
                let in_last_row = (stripes % members) * pages + page_count % pages;
                (stripes / members * pages, in_last_row)
            }
            Striping::Partition { .. } => (0, page_count),
        };
        whole + rest.saturating_sub(member.saturating_mul(pages)).min(pages)
    }

    /// Returns the pages of this member under a range of the array: always one range.
    pub(super) fn shares(self, member: usize, pages: &Range<PageId>) -> Range<PageId> {
        let [start, end] =
            [pages.start, pages.end].map(|page| PageId(self.first + self.share(member, page.0)));
        start..end
    }

    /// Returns the length of this member for an array of `page_count` pages.
    pub(super) fn member_pages(self, member: usize, page_count: u64) -> u64 {
        self.first.saturating_add(self.share(member, page_count))
    }

    /// Returns the length of the array, given each member's length: the number of pages before the first one that some
    /// member lacks.
    pub(super) fn page_count(self, of_members: impl Iterator<Item = u64>) -> u64 {
        let first_lacking = |(member, count): (usize, u64)| match self.striping {
            Striping::Partition { pages } if count >= pages => u64::MAX,
            _ => self.array_page_saturating(member, count),
        };
        let of_members = of_members.map(|count| count.saturating_sub(self.first));
        of_members.enumerate().map(first_lacking).min().unwrap_or(0).min(self.page_count_max())
    }

    /// Like `array_page`, for a page that may be too large to be counted.
    fn array_page_saturating(self, member: usize, page: u64) -> u64 {
        let stripe = self.stripe_pages();
        let row = (page / stripe).saturating_mul(self.members as u64);
        match self.striping {
            Striping::Extent { .. } => row
                .saturating_add(member as u64)
                .saturating_mul(stripe)
                .saturating_add(page % stripe),
            Striping::Partition { .. } => {
                (member as u64).saturating_mul(stripe).saturating_add(page)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout() -> impl Strategy<Value = Layout> {
        (1..5_usize, 1..9_u64, any::<bool>(), 0..4_u64).prop_map(
            |(members, pages, extent, first)| {
                let striping =
                    if extent { Striping::Extent { pages } } else { Striping::Partition { pages } };
                Layout { striping, members, first }
            },
        )
    }

    #[test]
    fn extents_go_round_the_members() {
        let layout = Layout { striping: Striping::Extent { pages: 2 }, members: 3, first: 0 };
        let members: Vec<usize> = (0..8).map(|page| layout.place(PageId(page)).member).collect();
        assert_eq!(members, [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(layout.place(PageId(7)), Place { member: 0, page: PageId(3), run: 1 });
    }

    proptest! {
        #[test]
        fn every_page_has_one_place_and_comes_back_from_it(layout in layout(), page in 0..100_u64) {
            prop_assume!(page < layout.page_count_max());
            let place = layout.place(PageId(page));
            prop_assert!(place.member < layout.members && place.run > 0);
            prop_assert_eq!(layout.array_page(place.member, place.page), PageId(page));
        }

        #[test]
        fn shares_count_the_pages_on_each_member(layout in layout(), page_count in 0..100_u64) {
            let page_count = page_count.min(layout.page_count_max());
            for member in 0..layout.members {
                let on_member =
                    |page: &u64| layout.place(PageId(*page)).member == member;
                let counted = (0..page_count).filter(on_member).count() as u64;
                prop_assert_eq!(layout.share(member, page_count), counted);
            }
            let counts = (0..layout.members).map(|member| layout.member_pages(member, page_count));
            prop_assert_eq!(layout.page_count(counts), page_count);
        }

        #[test]
        fn the_array_ends_before_the_first_page_that_a_member_lacks(
            layout in layout(), counts in prop::collection::vec(0..30_u64, 4),
        ) {
            let has = |page: u64| {
                let place = layout.place(PageId(page));
                place.page.0 < counts[place.member]
            };
            let expected = (0..layout.page_count_max().min(1_000)).take_while(|&page| has(page));
            let page_count = layout.page_count(counts[..layout.members].iter().copied());
            prop_assert_eq!(page_count, expected.count() as u64);
        }
    }
}
