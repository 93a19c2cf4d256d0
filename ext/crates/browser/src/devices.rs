//! Devices, browser profiles and network speeds that a browser command can emulate. Data only.

/// Properties of a device that the browser emulates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Device {
    pub name: &'static str,
    pub width: u32,
    pub height: u32,
    pub scale: f64,
    pub mobile: bool,
    pub touch: bool,
    /// User agent of the device; empty to keep the browser's own.
    pub user_agent: &'static str,
}

const ANDROID: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1";
const IPAD: &str = "Mozilla/5.0 (iPad; CPU OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1";

/// Device that is emulated when the command names none.
pub(super) const DESKTOP: Device = Device {
    name: "Desktop Chrome",
    width: 1280,
    height: 720,
    scale: 1.0,
    mobile: false,
    touch: false,
    user_agent: "",
};

pub(super) const DEVICES: &[Device] = &[
    DESKTOP,
    Device {
        name: "Pixel 7",
        width: 412,
        height: 839,
        scale: 2.625,
        mobile: true,
        touch: true,
        user_agent: ANDROID,
    },
    Device {
        name: "iPhone 15",
        width: 393,
        height: 659,
        scale: 3.0,
        mobile: true,
        touch: true,
        user_agent: IPHONE,
    },
    Device {
        name: "iPad",
        width: 810,
        height: 1080,
        scale: 2.0,
        mobile: true,
        touch: true,
        user_agent: IPAD,
    },
];

/// Browser profiles: name, emulated device, CPU slowdown factor, and name of the network speed.
pub(super) const PROFILES: &[(&str, &str, f64, &str)] = &[
    ("desktop-chrome", "Desktop Chrome", 1.0, "none"),
    ("mobile-chrome", "Pixel 7", 1.0, "none"),
    ("low-end-mobile-slow-4g", "Pixel 7", 4.0, "slow-4g"),
];

/// Network speeds: name, latency in milliseconds, download and upload speed in bytes per second
/// (-1: unlimited).
pub(super) const THROTTLES: &[(&str, f64, f64, f64)] = &[
    ("none", 0.0, -1.0, -1.0),
    ("fast-4g", 60.0, 1_125_000.0, 187_500.0),
    ("slow-4g", 150.0, 204_800.0, 93_750.0),
    ("fast-3g", 150.0, 204_800.0, 93_750.0),
    ("slow-3g", 400.0, 51_200.0, 51_200.0),
    ("offline", 0.0, 0.0, 0.0),
];

/// Permissions: name in the command's arguments and name in the browser.
pub(super) const PERMISSIONS: &[(&str, &str)] = &[
    ("geolocation", "geolocation"),
    ("notifications", "notifications"),
    ("clipboard-read", "clipboardReadWrite"),
    ("clipboard-write", "clipboardSanitizedWrite"),
    ("camera", "videoCapture"),
    ("microphone", "audioCapture"),
    ("midi", "midi"),
    ("storage-access", "storageAccess"),
];
