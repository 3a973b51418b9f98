//! `nandex check`: reads every page of a volume and checks it.
