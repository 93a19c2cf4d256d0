<?php
/**
 * Opens a browser session on the sample plugin without an engine: the record and the baseline that a real session has.
 */

declare(strict_types=1);

use WPCodebox\Browser\ArchiveWriter;
use WPCodebox\Browser\CodeFiles;
use WPCodebox\Browser\PrivateDirectory;
use WPCodebox\Browser\PrivateFiles;
use WPCodebox\Browser\SessionRecord;
use WPCodebox\Browser\SessionStore;
use WPCodebox\Host\InstalledCode;
use WPCodebox\Host\Site;

add_action(
	'wp_ajax_codebox_test_session',
	static function (): void {
		$site    = new Site( new InstalledCode() );
		$files   = new PrivateFiles( new PrivateDirectory( $site ), $site->id() );
		$archive = ( new ArchiveWriter( $files ) )->store( CodeFiles::below( WP_PLUGIN_DIR . '/sample' ) )['sha256'];
		$id      = 'session-' . wp_rand();
		( new SessionStore() )->keep( new SessionRecord( $id, 'site-1', 'preview-1', 'key-1', str_repeat( 'a', 64 ), 'admin', 'opaque', get_current_user_id(), get_current_blog_id(), time(), time() + HOUR_IN_SECONDS, [ [ 'target' => 'plugins/sample', 'archive' => $archive ] ] ) );
		wp_send_json( $id );
	}
);
