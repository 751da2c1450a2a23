//! Addresses inside a bed. They are the same in every bed: each has its own namespaces.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::names::Link;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Mac(pub [u8; 6]);

impl Mac {
    /// Of a NIC: 02 marks a locally administered address (IEEE 802, 8.4).
    pub fn of(link: Link) -> Mac {
        Mac([2, 0, 0, 0, link.host as u8, link.nic as u8])
    }

    /// Of the management interface of the host with this number; the head's is 255.
    pub const fn of_management(host: u8) -> Mac {
        Mac([2, 0, 0, 1, host, 0])
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Address of a NIC: 10.(1 + rail).0.(1 + host), a /24 for each rail.
pub(crate) fn of_link(link: Link) -> Ipv4Addr {
    Ipv4Addr::new(10, 1 + link.nic as u8, 0, 1 + link.host as u8)
}

/// Address of a host's management interface: 10.0.0.(1 + host).
pub(crate) fn of_management(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + host as u8)
}

/// Address of the head, from which mpirun starts everything.
pub(crate) const HEAD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
