<?php
/**
 * A stand-in for the native extension, for tests of the plugin alone.
 *
 * Loaded by a must-use plugin of the test site, only when the real extension is absent and
 * WP_CODEBOX_FAKE=1. The stand-in isolates nothing: it runs the agent of a test on a copy of the
 * mounted directory. Its answers have the types of `ext/php/stubs/wp_codebox.stub.php`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

foreach ( [ 'exceptions', 'Extension', 'Policy', 'Redactor', 'Bundles', 'Archives', 'Artifacts', 'Changes', 'Job', 'Run', 'Runs', 'AgentTask', 'Sandbox', 'Groups' ] as $wp_codebox_fake ) {
	require_once __DIR__ . '/' . $wp_codebox_fake . '.php';
}
