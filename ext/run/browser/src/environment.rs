//! Environment that the browser emulates for a page: device, location, locale and network speed.

use super::arguments::truth;
use super::devices::{DESKTOP, DEVICES, Device, PERMISSIONS, PROFILES, THROTTLES};
use super::events::text;
use super::wire::{Failure, Wire};
use serde_json::json;
use std::time::Instant;
use wp_codebox_contracts::SITE_ORIGIN;

/// Default locale and time zone, so that pages look the same on every host.
const LOCALE: &str = "en-US";
const ZONE: &str = "UTC";
/// Media feature of a user who wants no motion.
const REDUCED_MOTION: &str = "prefers-reduced-motion";

/// Location that the page sees, in degrees, and its accuracy in meters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Geolocation {
    pub latitude: f64,
    pub longitude: f64,
    pub accuracy: f64,
}

/// Environment that the browser emulates for a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    pub(super) device: Device,
    pub(super) user_agent: String,
    pub(super) locale: String,
    pub(super) zone: String,
    pub(super) slowdown: f64,
    pub(super) throttle: &'static str,
    pub(super) place: Option<Geolocation>,
    pub(super) permissions: Vec<&'static str>,
    /// Media features that style sheets can query: name and value.
    pub(super) media: Vec<(&'static str, &'static str)>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            device: DESKTOP,
            user_agent: String::new(),
            locale: LOCALE.to_owned(),
            zone: ZONE.to_owned(),
            slowdown: 1.0,
            throttle: "none",
            place: None,
            permissions: Vec::new(),
            media: Vec::new(),
        }
    }
}

fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl Environment {
    /// Reads the environment from a command's arguments; `value` returns an argument by name. The
    /// error text is one sentence.
    pub(super) fn read(value: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut found = Self::default();
        if let Some(name) = value("profile") {
            let profile = PROFILES.iter().find(|row| row.0 == name);
            let Some((_, device, slowdown, throttle)) = profile else {
                let known = names(PROFILES.iter().map(|row| row.0));
                return Err(format!("unknown profile {name:?}; known profiles: {known}"));
            };
            found.device = device_named(device)?;
            found.slowdown = *slowdown;
            found.throttle = throttle;
        }
        if let Some(name) = value("device") {
            found.device = device_named(&name)?;
        }
        if let Some(size) = value("viewport") {
            let read = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n));
            let size = size
                .split_once('x')
                .and_then(|(w, h)| Some((read(w)?, read(h)?)));
            (found.device.width, found.device.height) =
                size.ok_or("viewport must be WIDTHxHEIGHT, each from 1 to 4096")?;
        }
        if let Some(scale) = value("device-scale-factor") {
            let scale: Option<f64> = scale.parse().ok();
            found.device.scale = scale
                .filter(|scale| (0.1..=4.0).contains(scale))
                .ok_or("device-scale-factor must be a number from 0.1 to 4")?;
        }
        if let Some(mobile) = value("is-mobile") {
            found.device.mobile = truth("is-mobile", &mobile)?;
        }
        if let Some(touch) = value("has-touch") {
            found.device.touch = truth("has-touch", &touch)?;
        }
        if let Some(agent) = value("user-agent") {
            if agent.len() > 512 || agent.chars().any(char::is_control) {
                return Err(
                    "user-agent is longer than 512 bytes or has control characters".to_owned(),
                );
            }
            found.user_agent = agent;
        }
        let word = |name: &str, text: String| {
            let fits = (1..=64).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_/+".contains(&b));
            if fits {
                Ok(text)
            } else {
                Err(format!(
                    "{name} is {text:?}, but must have 1 to 64 letters, digits or -_/+"
                ))
            }
        };
        if let Some(locale) = value("locale") {
            found.locale = word("locale", locale)?;
        }
        if let Some(zone) = value("timezone") {
            found.zone = word("timezone", zone)?;
        }
        if let Some(name) = value("throttle") {
            // A profile's name stands for its network speed and its slow processor.
            let profile = PROFILES.iter().find(|row| row.0 == name && row.3 != "none");
            let row = THROTTLES.iter().find(|row| row.0 == name);
            found.throttle = profile
                .map(|row| row.3)
                .or(row.map(|row| row.0))
                .ok_or_else(|| {
                    let known = names(THROTTLES.iter().map(|row| row.0));
                    format!(
                        "unknown throttle {name:?}; known throttles: {known}, low-end-mobile-slow-4g"
                    )
                })?;
            if let Some(profile) = profile {
                found.slowdown = profile.2;
            }
        }
        found.place = place(&value)?;
        if let Some(list) = value("permissions") {
            for name in list
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
            {
                found.permissions.push(permission(name)?);
            }
        }
        match value("geolocation-permission").as_deref() {
            Some("granted") => found.permissions.push("geolocation"),
            Some("denied" | "prompt") => found.permissions.retain(|name| *name != "geolocation"),
            Some(other) if other != "default" => {
                return Err(format!(
                    "geolocation-permission is {other:?}, but must be granted, denied, prompt or default"
                ));
            }
            Some(_) | None => {}
        }
        found.media = media(&value)?;
        Ok(found)
    }

    /// Makes style sheets see that the user wants no motion, unless the command says otherwise.
    pub(super) fn without_motion(&mut self) {
        if !self.media.iter().any(|row| row.0 == REDUCED_MOTION) {
            self.media.push((REDUCED_MOTION, "reduce"));
        }
    }

    /// Makes the browser emulate this environment for the page, whatever it emulated before.
    pub(super) fn apply(&self, wire: &mut Wire<'_>, until: Instant) -> Result<(), Failure> {
        let device = &self.device;
        let agent = if self.user_agent.is_empty() {
            device.user_agent
        } else {
            &self.user_agent
        };
        let agent = if agent.is_empty() {
            // The browser's own user agent without the word `Headless`.
            let version = wire.ask_browser("Browser.getVersion", json!({}), until)?;
            text(&version, "/userAgent").replace("HeadlessChrome", "Chrome")
        } else {
            agent.to_owned()
        };
        let mut ask = |method, params| wire.ask(method, params, until).map(drop);
        ask(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": device.width, "height": device.height,
                "deviceScaleFactor": device.scale, "mobile": device.mobile}),
        )?;
        let params = json!({"enabled": device.touch});
        ask("Emulation.setTouchEmulationEnabled", params)?;
        if !self.media.is_empty() {
            let features: Vec<_> = self
                .media
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect();
            ask("Emulation.setEmulatedMedia", json!({"features": features}))?;
        }
        let zone = json!({"timezoneId": self.zone});
        ask("Emulation.setTimezoneOverride", zone)?;
        let locale = json!({"locale": self.locale});
        ask("Emulation.setLocaleOverride", locale)?;
        let agent = json!({"userAgent": agent, "acceptLanguage": self.locale});
        ask("Emulation.setUserAgentOverride", agent)?;
        if let Some(place) = self.place {
            ask(
                "Emulation.setGeolocationOverride",
                json!({"latitude": place.latitude, "longitude": place.longitude, "accuracy": place.accuracy}),
            )?;
        }
        let params = json!({"rate": self.slowdown});
        ask("Emulation.setCPUThrottlingRate", params)?;
        let throttle = THROTTLES.iter().find(|row| row.0 == self.throttle);
        if let Some((name, latency, down, up)) = throttle {
            ask(
                "Network.emulateNetworkConditions",
                json!({"offline": *name == "offline", "latency": latency,
                    "downloadThroughput": down, "uploadThroughput": up}),
            )?;
        }
        if !self.permissions.is_empty() {
            let params = json!({"origin": SITE_ORIGIN, "permissions": self.permissions});
            wire.ask_browser("Browser.grantPermissions", params, until)?;
        }
        Ok(())
    }
}

/// Returns the device with this name; ` landscape` after the name turns it.
fn device_named(name: &str) -> Result<Device, String> {
    let (upright, turned) = match name.strip_suffix(" landscape") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let found = DEVICES.iter().find(|device| device.name == upright);
    let Some(device) = found.filter(|device| device.mobile || !turned) else {
        let known = names(DEVICES.iter().map(|device| device.name));
        return Err(format!(
            "unknown device {name:?}; known devices: {known}; or set viewport and user-agent"
        ));
    };
    Ok(match turned {
        true => Device {
            width: device.height,
            height: device.width,
            ..*device
        },
        false => *device,
    })
}

fn permission(name: &str) -> Result<&'static str, String> {
    PERMISSIONS
        .iter()
        .find(|row| row.0 == name)
        .map(|row| row.1)
        .ok_or_else(|| {
            let known = names(PERMISSIONS.iter().map(|row| row.0));
            format!("unknown permission {name:?}; known permissions: {known}")
        })
}

fn media(
    value: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(&'static str, &'static str)>, String> {
    let mut found = Vec::new();
    match value("color-scheme").as_deref() {
        None | Some("no-preference") => {}
        Some("light") => found.push(("prefers-color-scheme", "light")),
        Some("dark") => found.push(("prefers-color-scheme", "dark")),
        Some(other) => {
            return Err(format!(
                "colorScheme is {other:?}, but must be light or dark"
            ));
        }
    }
    match value("reduced-motion").as_deref() {
        None => {}
        Some("reduce") => found.push((REDUCED_MOTION, "reduce")),
        Some("no-preference") => found.push((REDUCED_MOTION, "no-preference")),
        Some(text) => found.push(match truth("reduced-motion", text)? {
            true => (REDUCED_MOTION, "reduce"),
            false => (REDUCED_MOTION, "no-preference"),
        }),
    }
    Ok(found)
}

fn place(value: impl Fn(&str) -> Option<String>) -> Result<Option<Geolocation>, String> {
    let number = |name: &str, least: f64, most: f64| -> Result<Option<f64>, String> {
        value(name)
            .map(|text| {
                let number: Option<f64> = text.parse().ok();
                number
                    .filter(|number| (least..=most).contains(number))
                    .ok_or_else(|| format!("{name} must be a number from {least} to {most}"))
            })
            .transpose()
    };
    let accuracy = number("geolocation-accuracy", 0.0, 1_000_000.0)?;
    match (
        number("geolocation-latitude", -90.0, 90.0)?,
        number("geolocation-longitude", -180.0, 180.0)?,
    ) {
        (Some(latitude), Some(longitude)) => Ok(Some(Geolocation {
            latitude,
            longitude,
            accuracy: accuracy.unwrap_or(10.0),
        })),
        (None, None) if accuracy.is_none() => Ok(None),
        _ => Err("a location needs both geolocation-latitude and geolocation-longitude".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[(&str, &str)]) -> Result<Environment, String> {
        Environment::read(|name| {
            rows.iter()
                .find(|row| row.0 == name)
                .map(|row| row.1.to_owned())
        })
    }

    #[test]
    fn valid_browser_emulation_arguments_are_parsed_and_invalid_ones_are_refused() {
        let low = read(&[("profile", "low-end-mobile-slow-4g")]).unwrap();
        assert_eq!(
            (low.device.width, low.slowdown, low.throttle),
            (412, 4.0, "slow-4g")
        );
        let throttled = read(&[("throttle", "low-end-mobile-slow-4g")]).unwrap();
        assert_eq!(
            (
                throttled.device.width,
                throttled.slowdown,
                throttled.throttle
            ),
            (1280, 4.0, "slow-4g")
        );
        let turned = read(&[("device", "Pixel 5 landscape"), ("reduced-motion", "true")]).unwrap();
        assert_eq!((turned.device.width, turned.device.height), (727, 393));
        assert_eq!(turned.media, [("prefers-reduced-motion", "reduce")]);
        let sized = read(&[("device", "Pixel 7"), ("viewport", "300x200")]).unwrap();
        assert_eq!(
            (sized.device.width, sized.device.height, sized.device.mobile),
            (300, 200, true)
        );
        let there = read(&[
            ("geolocation-latitude", "52.5"),
            ("geolocation-longitude", "13.4"),
            ("geolocation-permission", "granted"),
        ])
        .unwrap();
        assert_eq!(there.permissions, ["geolocation"]);
        assert_eq!(there.place.unwrap().accuracy, 10.0);
        for rows in [
            [("profile", "fast")],
            [("device", "Toaster")],
            [("device", "Desktop Chrome landscape")],
            [("color-scheme", "pink")],
            [("viewport", "0x5")],
            [("geolocation-latitude", "52.5")],
            [("permissions", "everything")],
            [("throttle", "2g")],
            [("timezone", "Europe Berlin")],
        ] {
            assert!(read(&rows).is_err(), "{rows:?}");
        }
    }
}
