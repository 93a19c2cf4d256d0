<?php
/**
 * Removes host directories from responses.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use Throwable;
use WP_Error;
use WPCodebox\ExtensionGate;

defined( 'ABSPATH' ) || exit;

/**
 * A user who may start runs, but neither review nor apply, does not need host paths: the response has
 * `<state>`, `<plugins>` and so on instead. The class filters results and errors of every ability, because
 * the extension names directories in the middle of sentences.
 */
final class HiddenPaths {

	/** Response members with text that the guest or the caller wrote, or lists and objects of such text; they stay unchanged. */
	private const TEXTS = [ 'goal', 'task', 'output' ];
	private const LISTS = [ 'changed_files', 'events', 'response' ];

	/** Response member with references to files of a bundle. In this member, `changed_files` has paths of this host. */
	private const REFERENCES = 'refs';

	/** Directories of the guest. An equal path on the host reveals nothing, and a changed file must keep its name. */
	private const GUEST = [ '/wordpress', '/workspace' ];

	/**
	 * Placeholder by directory. Directories are replaced in this order, that of roots(): a plugin directory that is
	 * also a mount root becomes `<plugins>/name`.
	 *
	 * @var array<string, string>
	 */
	private readonly array $names;

	/**
	 * Collects the directories to hide.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( Site $site ) {
		$names = [];
		foreach ( self::roots( $site ) as $name => $paths ) {
			foreach ( (array) $paths as $path ) {
				// Registers each path as configured and with symlinks resolved; messages contain either form.
				foreach ( is_string( $path ) ? [ $path, (string) realpath( $path ) ] : [] as $root ) {
					$root = rtrim( $root, '/' );
					if ( str_starts_with( $root, '/' ) && ! Site::is_within( $root, self::GUEST ) ) {
						$names += [ $root => "<$name>" ];
					}
				}
			}
		}
		$this->names = $names;
	}

	/**
	 * Filters a result or error of an ability.
	 *
	 * @param array<string, mixed>|WP_Error $answer Result or error.
	 * @return array<string, mixed>|WP_Error
	 */
	public function hide( array|WP_Error $answer ): array|WP_Error {
		if ( is_array( $answer ) ) {
			return $this->values( $answer );
		}
		$error = new WP_Error();
		foreach ( $answer->get_error_codes() as $code ) {
			foreach ( $answer->get_error_messages( $code ) as $message ) {
				$error->add( $code, $this->text( (string) $message ) );
			}
			foreach ( $answer->get_all_error_data( $code ) as $data ) {
				$error->add_data( is_array( $data ) ? $this->values( $data ) : $data, $code );
			}
		}
		return $error;
	}

	/**
	 * Filters every string in a nested array.
	 *
	 * @param array<array-key, mixed> $values Values to filter.
	 * @param string|int              $of     Name of the array in its parent.
	 * @return array<array-key, mixed>
	 */
	private function values( array $values, string|int $of = '' ): array {
		foreach ( $values as $name => $value ) {
			if ( is_array( $value ) && ( self::REFERENCES === $of || ! in_array( $name, self::LISTS, true ) ) ) {
				$values[ $name ] = $this->values( $value, $name );
			} elseif ( is_string( $value ) && ! in_array( $name, self::TEXTS, true ) ) {
				$values[ $name ] = $this->text( $value );
			}
		}
		return $values;
	}

	/**
	 * Filters one string.
	 *
	 * @param string $text String to filter.
	 */
	private function text( string $text ): string {
		foreach ( $this->names as $root => $name ) {
			if ( str_contains( $text, $root ) ) {
				// Matches whole path components only: /srv/site does not match in /srv/site2 or
				// /mnt/srv/site.
				$text = (string) preg_replace( '~(?<![\w.-])' . preg_quote( $root, '~' ) . '(?![\w-]|\.\w)~', $name, $text );
			}
		}
		return $text;
	}

	/**
	 * Returns the directories and files of this host to hide; the key is the placeholder. If two paths are equal,
	 * the first placeholder replaces them.
	 *
	 * @param Site $site Site the plugin runs on.
	 * @return array<string, mixed>
	 */
	private static function roots( Site $site ): array {
		$ini = php_ini_loaded_file();
		try {
			$info  = ExtensionGate::info();
			$known = [] === $info ? [] : $site->known_roots();
		} catch ( Throwable ) {
			// Not reported: usually the response already is this error, caused by the same unreadable setting.
			$info  = [];
			$known = [];
		}
		return [
			'state'      => $info['state_dir'] ?? ini_get( 'wp_codebox.state_dir' ),
			'share'      => [ $info['share_dir'] ?? null, ini_get( 'wp_codebox.share_dir' ) ],
			'runner'     => [ $info['runner'] ?? null, ini_get( 'wp_codebox.runner' ), $info['runner_socket'] ?? null ],
			'launcher'   => [ $info['launcher'] ?? null, ini_get( 'wp_codebox.launcher' ), $info['outer_sandbox_program'] ?? null ],
			'php'        => [ $info['php_binary'] ?? null, ini_get( 'extension_dir' ), PHP_CONFIG_FILE_SCAN_DIR, PHP_CONFIG_FILE_PATH, is_string( $ini ) ? $ini : null ],
			'agents'     => $info['agents_dir'] ?? null,
			'plugins'    => [ WP_PLUGIN_DIR, WPMU_PLUGIN_DIR ],
			'themes'     => get_theme_root(),
			'content'    => WP_CONTENT_DIR,
			'site'       => $site->denied(),
			'wordpress'  => ABSPATH,
			'mount-root' => $known,
		];
	}
}
