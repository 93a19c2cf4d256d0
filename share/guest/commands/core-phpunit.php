<?php
/**
 * Command `wordpress.core-phpunit`: runs WordPress's own tests from a development checkout in the guest.
 *
 * `core-root` is the checkout (it contains tests/phpunit and src or build); `tests-dir` is its tests/phpunit.
 * The tests drop their tables, so they use their own table prefix.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/core-phpunit.php';

begin();
finish( core_phpunit( ... ) );
