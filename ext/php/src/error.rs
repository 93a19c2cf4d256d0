//! Converts errors of the extension to PHP exceptions.
//!
//! The classes are registered with `ClassBuilder` and use the engine's own object handlers, so
//! file, line, trace, `previous` and subclassing work as in PHP classes. The kind of an error
//! selects the exception class; its code and message become properties.

use crate::convert;
use ext_php_rs::builders::ClassBuilder;
use ext_php_rs::class::ClassEntryInfo;
use ext_php_rs::exception::PhpException;
use ext_php_rs::ffi::{IS_ARRAY, IS_LONG, IS_STRING, zend_class_entry, zend_string, zend_type};
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::{ZendObject, ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, ce};
use serde_json::Value;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use wp_codebox_contracts::{ErrorBody, ErrorKind};

unsafe extern "C" {
    static spl_ce_RuntimeException: *mut zend_class_entry;
    fn zend_declare_typed_property(
        class: *mut zend_class_entry,
        name: *mut zend_string,
        default: *mut Zval,
        access: i32,
        doc: *mut zend_string,
        kind: zend_type,
    ) -> *mut std::ffi::c_void;
    fn zend_update_property_ex(
        scope: *mut zend_class_entry,
        object: *mut ZendObject,
        name: *mut zend_string,
        value: *mut Zval,
    );
}

const ACCESS_PUBLIC: i32 = 1;
/// `ZEND_ACC_READONLY`, a macro without a binding.
const ACCESS_READONLY: i32 = 1 << 7;

const BASE: &str = "WPCodebox\\Native\\Exception";
static BASE_CLASS: AtomicPtr<ClassEntry> = AtomicPtr::new(ptr::null_mut());

/// One final class per error kind, indexed by [`slot`].
const CLASSES: [&str; 8] = [
    "WPCodebox\\Native\\InvalidInputException",
    "WPCodebox\\Native\\DeniedException",
    "WPCodebox\\Native\\NotFoundException",
    "WPCodebox\\Native\\ConflictException",
    "WPCodebox\\Native\\IntegrityException",
    "WPCodebox\\Native\\LimitException",
    "WPCodebox\\Native\\UnavailableException",
    "WPCodebox\\Native\\InternalException",
];
static KIND_CLASSES: [AtomicPtr<ClassEntry>; 8] =
    [const { AtomicPtr::new(ptr::null_mut()) }; CLASSES.len()];

const fn slot(kind: ErrorKind) -> usize {
    match kind {
        ErrorKind::InvalidInput => 0,
        ErrorKind::Denied => 1,
        ErrorKind::NotFound => 2,
        ErrorKind::Conflict => 3,
        ErrorKind::Integrity => 4,
        ErrorKind::Limit => 5,
        ErrorKind::Unavailable => 6,
        ErrorKind::Internal => 7,
    }
}

/// Registers the exception classes, the parent first. Called once in MINIT.
pub(crate) fn register() -> ext_php_rs::error::Result<()> {
    const RUNTIME_EXCEPTION: ClassEntryInfo = (runtime_exception, "\\RuntimeException");
    const PARENT: ClassEntryInfo = (base_class, "\\WPCodebox\\Native\\Exception");

    ClassBuilder::new(BASE)
        .extends(RUNTIME_EXCEPTION)
        .registration(|class, methods| {
            // There are no methods, but the engine may keep a pointer to the table.
            let _ = ManuallyDrop::new(methods);
            BASE_CLASS.store(class, Ordering::Release);
        })
        .register()?;
    for (name, kind) in [
        ("errorCode", IS_STRING),
        ("httpStatus", IS_LONG),
        ("exitStatus", IS_LONG),
        ("hints", IS_ARRAY),
        ("data", IS_ARRAY),
    ] {
        declare_readonly(name, kind);
    }
    for (index, name) in CLASSES.iter().enumerate() {
        ClassBuilder::new(*name)
            .flags(ClassFlags::Final)
            .extends(PARENT)
            .registration(|_, methods| {
                let _ = ManuallyDrop::new(methods);
            })
            .register()?;
        if let Some(class) = find_registered(name) {
            KIND_CLASSES[index].store(class, Ordering::Release);
        }
    }
    Ok(())
}

/// Finds a registered class by its name. The callback of `registration` is a plain function without
/// captures, so it cannot store the class in [`KIND_CLASSES`] under the right index.
fn find_registered(name: &str) -> Option<*mut ClassEntry> {
    // SAFETY: MINIT runs with the compiler globals set up; the lookup only reads the table.
    unsafe {
        let table = (*ext_php_rs::ffi::ext_php_rs_compiler_globals()).class_table;
        let found =
            ext_php_rs::ffi::zend_hash_str_find_ptr_lc(table, name.as_ptr().cast(), name.len());
        (!found.is_null()).then_some(found.cast())
    }
}

fn runtime_exception() -> &'static ClassEntry {
    // SAFETY: SPL is part of every PHP and starts before any shared extension;
    // class entries of internal classes live as long as the process.
    unsafe { &*spl_ce_RuntimeException }
}

fn base_class() -> &'static ClassEntry {
    let class = BASE_CLASS.load(Ordering::Acquire);
    if class.is_null() {
        return runtime_exception();
    }
    // SAFETY: set once in MINIT to a class entry that lives as long as the process.
    unsafe { &*class }
}

fn class_of(kind: ErrorKind) -> &'static ClassEntry {
    let class = KIND_CLASSES[slot(kind)].load(Ordering::Acquire);
    if class.is_null() {
        return base_class();
    }
    // SAFETY: set once in MINIT to a class entry that lives as long as the process.
    unsafe { &*class }
}

fn declare_readonly(name: &str, type_code: u32) {
    let class = ptr::from_ref(base_class()).cast_mut();
    // The engine requires readonly properties to have no default (UNDEF, not NULL).
    let mut undefined = Zval::new();
    undefined.u1.type_info = 0;
    let kind = zend_type {
        ptr: ptr::null_mut(),
        type_mask: 1 << type_code,
    };
    // SAFETY: called in MINIT for a class registered just before; the engine takes ownership of the
    // interned name and copies the default.
    unsafe {
        zend_declare_typed_property(
            class,
            ZendStr::new_interned(name, true).into_raw(),
            &raw mut undefined,
            ACCESS_PUBLIC | ACCESS_READONLY,
            ptr::null_mut(),
            kind,
        );
    }
}

/// Builds the exception for an error without throwing it.
pub(crate) fn exception(body: &ErrorBody) -> PhpException {
    let class = class_of(body.code.kind());
    let mut object = class.new();
    let base = base_class();
    set(
        &mut object,
        ce::exception(),
        "message",
        &body.message.as_str().into(),
    );
    set(&mut object, base, "errorCode", &body.code.as_str().into());
    set(
        &mut object,
        base,
        "httpStatus",
        &body.code.http_status().into(),
    );
    set(
        &mut object,
        base,
        "exitStatus",
        &body.code.exit_status().into(),
    );
    set(&mut object, base, "hints", &body.hints.clone().into());
    let data = match &body.data {
        Some(map) => Value::Object((**map).clone()),
        None => Value::Array(Vec::new()),
    };
    set(&mut object, base, "data", &data);

    let mut zval = Zval::new();
    zval.set_object(&mut object);
    PhpException::from_message(body.message.clone()).with_object(zval)
}

/// Sets a property in the scope of its declaring class, as readonly properties require.
fn set(object: &mut ZendObject, scope: &ClassEntry, name: &str, value: &Value) {
    let mut name = ZendStr::new(name, false);
    let mut value = convert::to_zval(value);
    // SAFETY: object, name and value outlive the call; the engine takes its own references.
    unsafe {
        zend_update_property_ex(
            ptr::from_ref(scope).cast_mut(),
            object,
            name.as_mut_ptr(),
            &raw mut value,
        );
    }
}
