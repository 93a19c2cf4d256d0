<?php
/**
 * Creates a package that sets up the same site elsewhere.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/outputs.php';
require_once __DIR__ . '/state.php';

/**
 * Creates the package: manifest.json, blueprint.json, files/runtime-snapshot.json, blueprint-notes.json.
 */
final class Replay {
	/** Size limit of a file that a step of the blueprint contains, in bytes. */
	private const FILE = 256 * 1024;
	/** Size limit of all files that steps of the blueprint contain, in bytes. */
	private const FILES = 1536 * 1024;
	/** Size limit of the site's content export (WXR) that a step contains, in bytes. */
	private const CONTENT = 1 << 20;
	/** Options that describe this installation and must not be copied to another one. */
	private const HERE = '/^(?:siteurl|home|admin_email|new_admin_email|cron|active_plugins|template|stylesheet|db_version|initial_db_version|fresh_site|rewrite_rules|auto_core_update_notified|can_compress_scripts|recovery_keys|user_roles|wp_user_roles|.*_user_roles|finished_updating_comment_type|https_detection_errors)$/';

	/**
	 * Notes on what the package does not contain.
	 *
	 * @var list<string>
	 */
	private array $limitations = array(
		'passwords, keys, salts and sessions are left out: users get new passwords',
	);

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 */
	public function __construct( private readonly Arguments $arguments ) {}

	/**
	 * Writes the files of the package and returns a description of them.
	 *
	 * @return array<string,mixed> Result document.
	 */
	public function exported(): array {
		$label   = state_label( $this->arguments );
		$landing = $this->arguments->first( 'landing-page' );
		$landing = str_starts_with( $landing, '/' ) || 1 === preg_match( '~^[A-Za-z][A-Za-z0-9+.-]*:~', $landing ) ? $landing : "/$landing";
		if ( 1 !== preg_match( '~^/(?!/)[^\s\x00-\x1f]{0,1999}$~D', $landing ) ) {
			throw Refusal::input( sprintf( 'landing-page is %s, but must be a path of the site, like /wp-admin/', Arguments::shown( $landing ) ) );
		}
		$capture   = new State( $this->arguments );
		$state     = $capture->state();
		$blueprint = array(
			'landingPage'       => $landing,
			'preferredVersions' => array(
				'php' => PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION,
				'wp'  => wp_get_wp_version(),
			),
			'steps'             => $this->steps( $state ),
		);
		$notes     = array(
			'schema'      => 'wp-codebox/wordpress-replay-notes/v1',
			'label'       => $label,
			'limitations' => array_merge( $this->limitations, $state['omitted'] ),
		);
		if ( '' !== $this->arguments->first( 'import-ms' ) ) {
			$notes['importMs'] = $this->arguments->number( 'import-ms', 0, 0, 999999999999999 );
		}
		$members = array(
			'blueprint.json'              => document_text( $blueprint ),
			'blueprint-notes.json'        => document_text( $notes ),
			'files/runtime-snapshot.json' => document_text( array( 'schema' => 'wp-codebox/wordpress-state/v1' ) + $state ),
		);
		ksort( $members, SORT_STRING );
		$content = "wp-codebox/artifact-content/v1\n";
		$files   = array();
		foreach ( $members as $path => $text ) {
			$content .= ( $files ? "\n" : '' ) . $path . "\n" . $text;
			$files[]  = array(
				'path'   => $path,
				'bytes'  => strlen( $text ),
				'sha256' => hash( 'sha256', $text ),
				'file'   => write_output( $this->arguments, $path, $text, 'replay-export' ),
			);
		}
		$digest  = hash( 'sha256', $content );
		$written = array_column( $files, 'file', 'path' );
		$found   = array(
			'schema'      => 'wp-codebox/wordpress-replay-export/v1',
			'status'      => 'ok',
			'id'          => 'replay-export-package-sha256-' . $digest,
			'label'       => $label,
			'landingPage' => $landing,
			'digest'      => array(
				'algorithm' => 'sha256',
				'value'     => $digest,
				'inputs'    => array_column( $files, 'path' ),
			),
			'files'       => $files,
			'steps'       => array_count_values( array_column( $blueprint['steps'], 'step' ) ),
			'limitations' => $notes['limitations'],
			'artifacts'   => (object) array(
				'blueprint'       => $written['blueprint.json'],
				'runtimeSnapshot' => $written['files/runtime-snapshot.json'],
			),
		);
		$found['artifacts']->manifest = write_output( $this->arguments, 'manifest.json', document_text( named( $found ) ), 'replay-export' );
		return $found;
	}

	/**
	 * Returns the blueprint's steps, which rebuild the recorded state.
	 *
	 * @param array<string,mixed> $state Captured state.
	 * @return list<array<string,mixed>>
	 */
	private function steps( array $state ): array {
		$steps = $this->file_steps( $state['files'] );
		foreach ( (array) get_option( 'active_plugins', array() ) as $plugin ) {
			$steps[] = array(
				'step'       => 'activatePlugin',
				'pluginPath' => '/wordpress/wp-content/plugins/' . $plugin,
			);
		}
		$steps[] = array(
			'step'            => 'activateTheme',
			'themeFolderName' => get_stylesheet(),
		);
		$options = array();
		foreach ( $state['options'] as $row ) {
			$cut = is_array( $row['value'] ) && isset( $row['value']['cut'] );
			if ( MASK !== $row['value'] && ! $cut && 1 !== preg_match( self::HERE, $row['name'] ) && ! str_contains( document_text( array( $row['value'] ) ), MASK ) ) {
				$options[ $row['name'] ] = $row['value'];
			}
		}
		if ( $options ) {
			$steps[] = array(
				'step'    => 'setSiteOptions',
				'options' => $options,
			);
		}
		return array_merge( $steps, $this->content_step() );
	}

	/**
	 * Returns the blueprint's steps that write files.
	 *
	 * @param array<string,mixed> $files Captured files.
	 * @return list<array<string,mixed>>
	 */
	private function file_steps( array $files ): array {
		$steps = array();
		$bytes = 0;
		$left  = 0;
		foreach ( $files['items'] as $item ) {
			$place = WP_CONTENT_DIR . '/' . $item['path'];
			if ( isset( $item['link'] ) || $item['bytes'] > self::FILE || $bytes + $item['bytes'] > self::FILES || ! is_readable( $place ) ) {
				++$left;
				continue;
			}
			$content = (string) file_get_contents( $place );
			$bytes  += strlen( $content );
			$text    = mb_check_encoding( $content, 'UTF-8' );
			$steps[] = array(
				'step' => 'writeFile',
				'path' => '/wordpress/wp-content/' . $item['path'],
				'data' => array(
					'resource' => 'literal',
					'name'     => basename( $item['path'] ),
					'contents' => $text ? $content : base64_encode( $content ),
				) + ( $text ? array() : array( 'encoding' => 'base64' ) ),
			);
		}
		if ( $left > 0 ) {
			$this->limitations[] = "$left files of wp-content are listed with their digests but not included: they are too large; narrow them with snapshot-include-wp-content";
		}
		return $steps;
	}

	/**
	 * Returns the blueprint's step that imports the site's content export (WXR).
	 *
	 * @return list<array<string,mixed>>
	 */
	private function content_step(): array {
		ob_start();
		export_wp( array( 'content' => 'all' ) );
		$content = (string) preg_replace( '~(<wp:post_password>)<!\[CDATA\[.+?\]\]>~s', '$1<![CDATA[]]>', (string) ob_get_clean() );
		if ( strlen( $content ) > self::CONTENT ) {
			$this->limitations[] = 'the content is ' . strlen( $content ) . ' bytes and not included; the snapshot lists every post with its digest';
			return array();
		}
		return array(
			array(
				'step' => 'importWxr',
				'file' => array(
					'resource' => 'literal',
					'name'     => 'content.xml',
					'contents' => mb_scrub( $content, 'UTF-8' ),
				),
			),
		);
	}
}
