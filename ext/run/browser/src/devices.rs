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

const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1";
const IPAD: &str = "Mozilla/5.0 (iPad; CPU OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1";

/// Device that is emulated when the command names none.
pub(super) const DESKTOP: Device = desktop("Desktop Chrome", 1280, 720, 1.0);

/// Returns a desktop computer. The user agent stays that of Chromium, even for a device whose name
/// is that of another browser, because the engine is Chromium's.
const fn desktop(name: &'static str, width: u32, height: u32, scale: f64) -> Device {
    Device {
        name,
        width,
        height,
        scale,
        mobile: false,
        touch: false,
        user_agent: "",
    }
}

/// Returns a device with Android; the last value is `" Mobile"` for a telephone.
macro_rules! android {
    ($name:literal, $width:literal, $height:literal, $scale:literal, $mobile:literal) => {
        Device {
            name: $name,
            width: $width,
            height: $height,
            scale: $scale,
            mobile: true,
            touch: true,
            user_agent: concat!(
                "Mozilla/5.0 (Linux; Android 14; ",
                $name,
                ") AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0",
                $mobile,
                " Safari/537.36"
            ),
        }
    };
}

/// Returns a device with iOS.
macro_rules! apple {
    ($name:literal, $width:literal, $height:literal, $scale:literal, $agent:ident) => {
        Device {
            name: $name,
            width: $width,
            height: $height,
            scale: $scale,
            mobile: true,
            touch: true,
            user_agent: $agent,
        }
    };
}

/// Devices by the names that browser test tools use. The size is that of the page, without the bars
/// of the device's browser.
pub(super) const DEVICES: &[Device] = &[
    DESKTOP,
    android!("Galaxy S5", 360, 640, 3.0, " Mobile"),
    android!("Galaxy S8", 360, 740, 3.0, " Mobile"),
    android!("Galaxy S9+", 320, 658, 4.5, " Mobile"),
    android!("Galaxy S24", 360, 780, 3.0, " Mobile"),
    android!("Galaxy A55", 480, 1040, 2.25, " Mobile"),
    android!("Moto G4", 360, 640, 3.0, " Mobile"),
    android!("Nexus 4", 384, 640, 2.0, " Mobile"),
    android!("Nexus 5", 360, 640, 3.0, " Mobile"),
    android!("Nexus 5X", 412, 732, 2.625, " Mobile"),
    android!("Nexus 6", 412, 732, 3.5, " Mobile"),
    android!("Nexus 6P", 412, 732, 3.5, " Mobile"),
    android!("Pixel 2", 411, 731, 2.625, " Mobile"),
    android!("Pixel 2 XL", 411, 823, 3.5, " Mobile"),
    android!("Pixel 3", 393, 786, 2.75, " Mobile"),
    android!("Pixel 4", 353, 745, 3.0, " Mobile"),
    android!("Pixel 4a (5G)", 412, 765, 2.63, " Mobile"),
    android!("Pixel 5", 393, 727, 2.75, " Mobile"),
    android!("Pixel 7", 412, 839, 2.625, " Mobile"),
    android!("Galaxy Tab S4", 712, 1138, 2.25, ""),
    android!("Galaxy Tab S9", 640, 1024, 2.5, ""),
    android!("Kindle Fire HDX", 800, 1280, 2.0, ""),
    android!("Nexus 7", 600, 960, 2.0, ""),
    android!("Nexus 10", 800, 1280, 2.0, ""),
    apple!("iPhone 6", 375, 667, 2.0, IPHONE),
    apple!("iPhone 6 Plus", 414, 736, 3.0, IPHONE),
    apple!("iPhone 7", 375, 667, 2.0, IPHONE),
    apple!("iPhone 7 Plus", 414, 736, 3.0, IPHONE),
    apple!("iPhone 8", 375, 667, 2.0, IPHONE),
    apple!("iPhone 8 Plus", 414, 736, 3.0, IPHONE),
    apple!("iPhone SE", 320, 568, 2.0, IPHONE),
    apple!("iPhone SE (3rd gen)", 375, 667, 2.0, IPHONE),
    apple!("iPhone X", 375, 812, 3.0, IPHONE),
    apple!("iPhone XR", 414, 896, 3.0, IPHONE),
    apple!("iPhone 11", 414, 715, 2.0, IPHONE),
    apple!("iPhone 11 Pro", 375, 635, 3.0, IPHONE),
    apple!("iPhone 11 Pro Max", 414, 715, 3.0, IPHONE),
    apple!("iPhone 12", 390, 664, 3.0, IPHONE),
    apple!("iPhone 12 Pro", 390, 664, 3.0, IPHONE),
    apple!("iPhone 12 Pro Max", 428, 746, 3.0, IPHONE),
    apple!("iPhone 12 Mini", 375, 629, 3.0, IPHONE),
    apple!("iPhone 13", 390, 664, 3.0, IPHONE),
    apple!("iPhone 13 Pro", 390, 664, 3.0, IPHONE),
    apple!("iPhone 13 Pro Max", 428, 746, 3.0, IPHONE),
    apple!("iPhone 13 Mini", 375, 629, 3.0, IPHONE),
    apple!("iPhone 14", 390, 664, 3.0, IPHONE),
    apple!("iPhone 14 Plus", 428, 746, 3.0, IPHONE),
    apple!("iPhone 14 Pro", 393, 660, 3.0, IPHONE),
    apple!("iPhone 14 Pro Max", 430, 740, 3.0, IPHONE),
    apple!("iPhone 15", 393, 659, 3.0, IPHONE),
    apple!("iPhone 15 Plus", 430, 739, 3.0, IPHONE),
    apple!("iPhone 15 Pro", 393, 659, 3.0, IPHONE),
    apple!("iPhone 15 Pro Max", 430, 739, 3.0, IPHONE),
    apple!("iPad", 810, 1080, 2.0, IPAD),
    apple!("iPad (gen 5)", 768, 1024, 2.0, IPAD),
    apple!("iPad (gen 6)", 768, 1024, 2.0, IPAD),
    apple!("iPad (gen 7)", 810, 1080, 2.0, IPAD),
    apple!("iPad (gen 11)", 656, 944, 2.0, IPAD),
    apple!("iPad Mini", 768, 1024, 2.0, IPAD),
    apple!("iPad Pro 11", 834, 1194, 2.0, IPAD),
    desktop("Desktop Chrome HiDPI", 1280, 720, 2.0),
    desktop("Desktop Edge", 1280, 720, 1.0),
    desktop("Desktop Edge HiDPI", 1280, 720, 2.0),
    desktop("Desktop Firefox", 1280, 720, 1.0),
    desktop("Desktop Firefox HiDPI", 1280, 720, 2.0),
    desktop("Desktop Safari", 1280, 720, 2.0),
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
