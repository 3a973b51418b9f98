//! How many bits a slot has: a constant for the sizes that are met most, so that the compiler knows its shifts
//! and strides, and a number for all others.

/// Bits of a slot.
pub(super) trait Width: Copy {
    /// 1 to 56 of them.
    fn bits(self) -> usize;
}

/// A constant.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const BITS: usize>;

/// Any number.
#[derive(Clone, Copy)]
pub(super) struct Any(pub usize);

impl<const BITS: usize> Width for Fixed<BITS> {
    #[inline(always)]
    fn bits(self) -> usize {
        BITS
    }
}

impl Width for Any {
    #[inline(always)]
    fn bits(self) -> usize {
        self.0
    }
}

/// Runs an expression with `$width` as what `$bits` are.
macro_rules! with_width {
    ($bits:expr, $width:ident => $run:expr) => {
        match $bits {
            8 => {
                let $width = Fixed::<8>;
                $run
            }
            9 => {
                let $width = Fixed::<9>;
                $run
            }
            10 => {
                let $width = Fixed::<10>;
                $run
            }
            16 => {
                let $width = Fixed::<16>;
                $run
            }
            bits => {
                let $width = Any(bits as usize);
                $run
            }
        }
    };
}

pub(super) use with_width;
