<?php
/**
 * Apply adapter that commits approved files on a branch of a git repository.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\GitBranch;

use Throwable;
use WPCodebox\Apply\ApplyAdapters;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Off until an administrator names a repository. A process of the supervisor makes the commit; PHP starts no
 * program. No file of the site changes and nothing is pushed. If another plugin answers the filter earlier, that
 * plugin applies the change. Direct apply writes a change only if no repository is named.
 */
final class GitBranch {

	/** Name of this adapter in apply results. */
	public const ADAPTER = 'codebox-git-branch';

	/**
	 * Creates the adapter with its dependencies.
	 *
	 * @param Settings   $settings   Settings that turn it on.
	 * @param Site       $site       Site the plugin runs on.
	 * @param Repository $repository Repository, branches and people of the settings.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Site $site,
		private readonly Repository $repository
	) {}

	/** Registers the adapter. */
	public function register(): void {
		add_filter( ApplyAdapters::HOOK, [ $this, 'answer' ], 10, 2 );
		// Priority 1, so that a later callback of the site's code can still forbid the change.
		add_filter( 'file_mod_allowed', [ $this, 'allow' ], 1, 2 );
	}

	/**
	 * Answers the filter: commits the change unless another plugin already has applied it, or there is no repository.
	 *
	 * @param mixed $result  Result of another plugin, or null.
	 * @param mixed $payload Approved change.
	 */
	public function answer( mixed $result, mixed $payload = [] ): mixed {
		if ( null !== $result || ! Repository::is_set( $this->settings ) || ! is_array( $payload ) ) {
			return $result;
		}
		try {
			return $this->apply( $payload );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	}

	/**
	 * Answers the filter `file_mod_allowed`: a commit changes no file of the site, so DISALLOW_FILE_MODS does not forbid it.
	 *
	 * @param mixed $allowed Whether files may be changed.
	 * @param mixed $context Context that the caller of the filter names.
	 */
	public function allow( mixed $allowed, mixed $context = '' ): mixed {
		return 'wp_codebox_apply' === $context && self::ADAPTER === ApplyAdapters::next( $this->settings ) ? true : $allowed;
	}

	/**
	 * Commits a change and describes it as `wp-codebox/apply-result/v1`.
	 *
	 * @param array<string, mixed> $payload Approved change.
	 * @return array<string, mixed>
	 * @throws Failure When nothing was committed.
	 */
	private function apply( array $payload ): array {
		$directory = $this->repository->directory();
		$branch    = $this->repository->branch( (string) $payload['run_id'] );
		$result    = Changes::commit(
			$this->site->id(),
			[
				'reference'       => $payload['run_id'],
				'approved_files'  => $payload['approved_files'],
				'manifest_sha256' => $payload['manifest_sha256'],
				'patch_sha256'    => $payload['patch_sha256'],
				'repository'      => $directory,
				'directories'     => $this->repository->directories( $directory, (array) $payload['targets'] ),
				'branch'          => $branch,
				'base'            => $this->repository->base(),
				'author'          => $this->repository->author(),
				'committer'       => $this->repository->committer(),
				'approver'        => self::approver( $payload ),
				'trusted_keys'    => $this->settings->trusted_keys(),
			] + ( empty( $payload['browser_origin_confirmed'] ) ? [] : [ 'confirm_browser_origin' => true ] )
		);
		$count     = count( $result['files'] );
		return [
			'schema'          => 'wp-codebox/apply-result/v1',
			'adapter'         => self::ADAPTER,
			'status'          => $result['status'],
			'audit_reference' => $result['change'],
			'target'          => [
				'repository' => basename( $directory ),
				'base'       => $this->repository->base(),
			],
			'applied_files'   => $result['files'],
			'branch'          => $branch,
			'commit'          => $result['change'],
			/* translators: 1: number of files, 2: name of a branch. */
			'message'         => sprintf( _n( '%1$d file was committed on the branch %2$s; no file of this site changed, and nothing was pushed.', '%1$d files were committed on the branch %2$s; no file of this site changed, and nothing was pushed.', $count, 'codebox' ), $count, $branch ),
		];
	}

	/**
	 * Returns the approver as text for the commit message.
	 *
	 * @param array<string, mixed> $payload Approved change.
	 */
	private static function approver( array $payload ): string {
		$approver = $payload['approver'];
		if ( is_array( $approver ) ) {
			$approver = $approver['login'] ?? $approver['name'] ?? $approver['kind'] ?? '';
		}
		$text = is_scalar( $approver ) ? (string) $approver : '';
		return $payload['approver_claimed'] ? $text . ' (claimed)' : $text;
	}
}
