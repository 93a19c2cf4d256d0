//! Hooks of the PHP engine. A panic in a hook would abort the process, so each hook runs in
//! `catch_unwind`.

use crate::version::{CONTRACT_DIGEST, VERSION};
use crate::{api, client, error, guard, ini, session};
use ext_php_rs::class::RegisteredClass;
use ext_php_rs::error::php_error;
use ext_php_rs::ffi::{
    HashTable, php_info_print_table_end, php_info_print_table_row, php_info_print_table_start,
    zend_class_entry, zend_function, zend_hash_str_find_ptr_lc, zend_string,
};
use ext_php_rs::flags::ErrorType;
use ext_php_rs::zend::ModuleEntry;
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use wp_codebox_contracts::PROTOCOL_VERSION;

unsafe extern "C" {
    fn display_ini_entries(module: *mut ModuleEntry);
    static zend_ce_sensitive_parameter: *mut zend_class_entry;
    fn zend_add_attribute(
        attributes: *mut *mut HashTable,
        name: *mut zend_string,
        arguments: u32,
        flags: u32,
        offset: u32,
        line: u32,
    ) -> *mut c_void;
}

/// `ZEND_ATTRIBUTE_PERSISTENT`: the attribute outlives the request.
const PERSISTENT: u32 = 1;
static SENSITIVE: Once = Once::new();

const SUCCESS: c_int = 0;
const FAILURE: c_int = -1;

/// MINIT: registers settings and exception classes. The module builder registers the other classes
/// later.
pub(crate) extern "C" fn startup(_kind: c_int, module_number: c_int) -> c_int {
    guard::install_panic_hook();
    let outcome = catch_unwind(|| {
        ini::register(module_number);
        error::register()
    });
    let problem = match outcome {
        Ok(Ok(())) => return SUCCESS,
        Ok(Err(error)) => {
            format!(
                "wp_codebox: PHP did not register the exception classes ({error}); please report it"
            )
        }
        Err(_) => "wp_codebox: the extension panicked at its start; please report it".to_owned(),
    };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        php_error(&ErrorType::CoreWarning, &problem)
    }));
    FAILURE
}

/// RINIT: forgets the client connection of the previous request. In the first request of a process
/// also marks parameters that may hold secrets as sensitive, so that stack traces hide them; MINIT
/// is too early for that, because the classes are registered after it.
pub(crate) extern "C" fn request_start(_kind: c_int, _module_number: c_int) -> c_int {
    let _ = catch_unwind(|| {
        client::reset();
        SENSITIVE.call_once(|| {
            sensitive::<api::Run>(&[
                (c"start", 0),
                (c"start", 1),
                (c"validate", 0),
                (c"validate", 1),
                (c"splitcommand", 0),
                (c"stagecommands", 0),
            ]);
            sensitive::<api::Redactor>(&[(c"text", 0), (c"text", 1), (c"data", 0), (c"data", 1)]);
            sensitive::<api::Artifacts>(&[(c"audit", 1)]);
            sensitive::<api::Sandbox>(&[(c"ask", 2), (c"ask", 3)]);
        });
    });
    SUCCESS
}

fn sensitive<T: RegisteredClass>(parameters: &[(&CStr, u32)]) {
    let functions = &raw const T::get_metadata().ce().function_table;
    for (method, position) in parameters {
        // SAFETY: the class entry, its functions and the attribute's class live as long as
        // the process, and `Once` keeps other threads out. Parameters count from 1.
        unsafe {
            let found = zend_hash_str_find_ptr_lc(functions, method.as_ptr(), method.count_bytes());
            if let Some(function) = found.cast::<zend_function>().as_mut() {
                let name = (*zend_ce_sensitive_parameter).name;
                let attributes = &raw mut function.common.attributes;
                zend_add_attribute(attributes, name, 0, PERSISTENT, position + 1, 0);
            }
        }
    }
}

/// RSHUTDOWN: cancels runs that the request left running, unless they were detached.
pub(crate) extern "C" fn request_end(_kind: c_int, _module_number: c_int) -> c_int {
    let _ = catch_unwind(session::close_all);
    SUCCESS
}

/// Prints the section of `phpinfo()` and `php --ri wp_codebox`.
pub(crate) extern "C" fn info(module: *mut ModuleEntry) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: called by the engine during a request with its own module entry.
        unsafe {
            php_info_print_table_start();
            row(c"wp_codebox", c"enabled");
            text_row(c"Version", VERSION);
            text_row(c"Runner protocol", &PROTOCOL_VERSION.to_string());
            text_row(c"Contract digest", CONTRACT_DIGEST);
            php_info_print_table_end();
            display_ini_entries(module);
        }
    }));
}

/// # Safety
/// Call it only between `php_info_print_table_start` and `php_info_print_table_end`.
unsafe fn row(name: &CStr, value: &CStr) {
    // SAFETY: two columns, two NUL-terminated strings; the engine copies them.
    unsafe { php_info_print_table_row(2, name.as_ptr(), value.as_ptr()) };
}

/// # Safety
/// Call it only between `php_info_print_table_start` and `php_info_print_table_end`.
unsafe fn text_row(name: &CStr, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: the caller guarantees that the table was started and not ended.
    unsafe { row(name, &value) };
}
