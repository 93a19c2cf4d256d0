<?php
/**
 * Command `wordpress.core-phpunit`: runs tests of WordPress itself, where a development checkout
 * is in the guest.
 *
 * `core-root` is the checkout (it holds tests/phpunit and src or build); `tests-dir` its
 * tests/phpunit. A test run drops its tables: they have a prefix of their own.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/core-phpunit.php';

begin();
finish( core_phpunit( ... ) );
