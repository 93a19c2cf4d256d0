<?php
/**
 * Repository, branches and people of the git branch adapter.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\GitBranch;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\GuardedDirectories;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Reads the setting `wp_codebox_git_branch`. The repository must lie below `wp_codebox.mount_roots`, or wp-config.php names it
 * in the constant WP_CODEBOX_GIT_REPOSITORY. It is never the state directory.
 */
final class Repository {

	/** Constant of wp-config.php that names the repository. */
	public const CONSTANT = 'WP_CODEBOX_GIT_REPOSITORY';

	public const BRANCH = 'codebox/{run}';
	public const BASE   = 'main';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings           $settings Settings with repository, branches and people.
	 * @param GuardedDirectories $guarded  Directories that the operator opens.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly GuardedDirectories $guarded = new GuardedDirectories()
	) {}

	/** Returns the directory that wp-config.php names; '' without the constant. */
	public static function configured(): string {
		return defined( self::CONSTANT ) && is_string( constant( self::CONSTANT ) ) ? constant( self::CONSTANT ) : '';
	}

	/**
	 * Returns whether approved changes are committed: the settings or wp-config.php name a repository.
	 *
	 * @param Settings $settings Settings that may name one.
	 */
	public static function is_set( Settings $settings ): bool {
		return '' !== self::configured() || '' !== $settings->git_branch()['repository'];
	}

	/**
	 * Returns the canonical directory of the repository.
	 *
	 * @throws Failure `wp_codebox_mount_denied`.
	 */
	public function directory(): string {
		$configured = self::configured();
		return $this->permitted( '' === $configured ? $this->settings->git_branch()['repository'] : $configured );
	}

	/**
	 * Returns the canonical form of a directory that may be the repository.
	 *
	 * @param string $path Absolute path.
	 * @throws Failure `wp_codebox_mount_denied`.
	 */
	public function permitted( string $path ): string {
		$real  = str_starts_with( $path, '/' ) ? realpath( $path ) : false;
		$roots = '' !== self::configured() && $path === self::configured() ? [ $real ] : $this->guarded->opened();
		if ( false === $real || ! is_dir( $real ) || ! Site::is_within( $real, $roots ) ) {
			throw Failure::because(
				ErrorCode::MountDenied,
				__( 'The git repository does not exist, or lies outside the directories of wp_codebox.mount_roots in php.ini.', 'codebox' ),
				[ __( 'Name a directory inside one of these directories, or define the constant WP_CODEBOX_GIT_REPOSITORY in wp-config.php.', 'codebox' ) ]
			);
		}
		$state = Site::canonical( (string) ( ExtensionGate::info()['state_dir'] ?? '' ) );
		if ( '' !== $state && ( Site::is_within( $real, [ $state ] ) || Site::is_within( $state, [ $real ] ) ) ) {
			throw Failure::because( ErrorCode::MountDenied, __( 'The git repository contains the state directory of Codebox or lies in it; name another repository.', 'codebox' ) );
		}
		return $real;
	}

	/**
	 * Returns the branch for a run.
	 *
	 * @param string $run_id Run id.
	 */
	public function branch( string $run_id ): string {
		$pattern = $this->settings->git_branch()['branch'];
		return strtr( '' === $pattern ? self::BRANCH : $pattern, [ '{run}' => $run_id ] );
	}

	/** Returns the branch at which a new branch begins. */
	public function base(): string {
		$base = $this->settings->git_branch()['base'];
		return '' === $base ? self::BASE : $base;
	}

	/**
	 * Returns the directory in the repository for the code of each mount: from the pattern of the settings, else where the
	 * host directory is in the work tree.
	 *
	 * @param string                $repository Canonical directory of the repository.
	 * @param array<string, string> $targets    Canonical host directory by mount target.
	 * @return array<string, string>
	 * @throws Failure `wp_codebox_apply_target_mismatch`.
	 */
	public function directories( string $repository, array $targets ): array {
		$pattern = $this->settings->git_branch()['directory'];
		$found   = [];
		foreach ( $targets as $mount => $target ) {
			if ( '' !== $pattern ) {
				$path            = (string) preg_replace( '#^/(wordpress/wp-content|workspace)/#', '', $mount );
				$inner           = trim( strtr( $pattern, [ '{path}' => $path, '{name}' => basename( $mount ) ] ), '/' );
				$found[ $mount ] = '.' === $inner ? '' : $inner;
				continue;
			}
			if ( ! Site::is_within( $target, [ $repository ] ) ) {
				throw Failure::because(
					ErrorCode::ApplyTargetMismatch,
					/* translators: %s: directory in the sandbox. */
					Sentence::of( __( 'The code of %s is not in the work tree of the git repository.', 'codebox' ), $mount ),
					[ __( 'Set the directory of the code in the settings of the git branch, for example wp-content/{path}.', 'codebox' ) ]
				);
			}
			$found[ $mount ] = ltrim( substr( $target, strlen( rtrim( $repository, '/' ) ) ), '/' );
		}
		return $found;
	}

	/**
	 * Returns the author: that of the settings, else the current user, else the site.
	 *
	 * @return array{name: string, email: string}
	 */
	public function author(): array {
		$user = wp_get_current_user();
		$own  = $user->exists() && '' !== $user->user_email ? self::person( $user->display_name, $user->user_email ) : self::site();
		return self::parsed( $this->settings->git_branch()['author'] ) ?? $own;
	}

	/**
	 * Returns the committer: that of the settings, else the site.
	 *
	 * @return array{name: string, email: string}
	 */
	public function committer(): array {
		return self::parsed( $this->settings->git_branch()['committer'] ) ?? self::site();
	}

	/**
	 * Reads `Name <mail address>`; null for other text.
	 *
	 * @param string $text Text of a setting.
	 * @return array{name: string, email: string}|null
	 */
	public static function parsed( string $text ): ?array {
		if ( 1 !== preg_match( '/^([^<>\p{C}]*[^<>\p{C}\s])\s*<([^<>\s\p{C}]{3,})>$/uD', $text, $parts ) || ! is_email( $parts[2] ) ) {
			return null;
		}
		return self::person( $parts[1], $parts[2] );
	}

	/**
	 * Returns the site as author.
	 *
	 * @return array{name: string, email: string}
	 */
	private static function site(): array {
		return self::person( wp_specialchars_decode( get_bloginfo( 'name' ), ENT_QUOTES ), (string) get_option( 'admin_email' ) );
	}

	/**
	 * Returns name and address without the characters that end them in a commit. Git refuses an empty name.
	 *
	 * @param string $name  Name.
	 * @param string $email Mail address.
	 * @return array{name: string, email: string}
	 */
	private static function person( string $name, string $email ): array {
		$name = trim( (string) preg_replace( '/[<>\p{C}]+/u', ' ', $name ) );
		return [
			'name'  => 1 === preg_match( '/[\p{L}\p{N}]/u', $name ) ? $name : 'Codebox',
			'email' => (string) preg_replace( '/[<>\s\p{C}]+/u', '', $email ),
		];
	}
}
