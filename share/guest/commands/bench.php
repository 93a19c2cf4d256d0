<?php
/**
 * Command `wordpress.bench`: runs workloads of a plugin several times in one process with WordPress loaded,
 * and measures each run.
 *
 * A workload is {id, type: php, file|code}, {id, type: rest, path, method?, params?}, {id, type: wp-cli,
 * command}, another command with its arguments, or {id, run: [steps]}. Without workloads-json, every *.php
 * file in the plugin's directories bench/ and tests/bench/ is a workload. A file returns a callable; code is
 * the body of one. `lifecycle-json` is {setup?, teardown?}, each a step or a list of them, run before and
 * after each workload; `reset-policy-json` is {between: none|cache}.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/bench.php';

begin();
bench_environment();
$codebox_watch = new Watch();
require wordpress();
require_once ABSPATH . 'wp-admin/includes/plugin.php';
finish( static fn ( Arguments $arguments ): array => ( new Bench( $arguments, $codebox_watch ) )->run() );
