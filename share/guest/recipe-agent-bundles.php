<?php
/**
 * Imports the agent bundles of a recipe.
 *
 * Request: {bundles: [{source|bundle, slug, on_conflict, owner_id, token_env}]}. Prints {status: imported, bundles}
 * with their number; exit status 1 when the guest has no importer or a bundle was not imported.
 *
 * @package WPCodebox
 */

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/exit-guard.php';
require __DIR__ . '/answer.php';
require __DIR__ . '/agent-bundles.php';

wp_set_current_user( 1 );
$codebox_doing  = 'agent bundles were imported';
$codebox_answer = codebox_import( codebox_bundles( $codebox_question['bundles'] ) );
$codebox_doing  = '';
if ( 'imported' !== $codebox_answer['status'] ) {
	$codebox_why = 'unavailable' === $codebox_answer['status']
		? 'the guest cannot import them: add a plugin that defines wp_agent_import_runtime_bundles() to inputs.extra_plugins'
		: $codebox_answer['message'];
	fwrite( STDERR, "the agent bundles were not imported: $codebox_why\n" );
	exit( 1 );
}
echo wp_json_encode( $codebox_answer + array( 'bundles' => count( $codebox_question['bundles'] ) ) ), "\n";
