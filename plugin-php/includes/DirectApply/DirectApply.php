<?php
/**
 * Apply adapter that writes approved files into this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use Throwable;
use WPCodebox\Apply\ApplyAdapters;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Changes;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Off until an administrator turns it on. The apply engine of the extension writes the files: all of them or
 * none. A process of the supervisor then requests pages of the site and rolls the change back if one got worse. If another
 * plugin answers the filter earlier, that plugin applies the change.
 */
final class DirectApply {

	/** Name of this adapter in apply results. */
	public const ADAPTER = 'codebox-direct';

	/** Change of this request whose result is not recorded yet; null without one. */
	private ?RunningChange $running = null;

	/**
	 * Arguments for the mail about that change; null if no change was applied.
	 *
	 * @var array{string, array<string, mixed>, list<string>, int}|null
	 */
	private ?array $mail = null;

	/**
	 * Creates the adapter with its dependencies.
	 *
	 * @param Settings       $settings Settings that turn it on.
	 * @param Site           $site     Site the plugin runs on.
	 * @param SensitiveFiles $files    Files that need a second confirmation.
	 * @param HealthCheck    $health   Names the pages and logs that show whether the site works.
	 * @param RecoveryLink   $recovery Mails a link that takes the change back.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly Site $site,
		private readonly SensitiveFiles $files,
		private readonly HealthCheck $health,
		private readonly RecoveryLink $recovery
	) {}

	/** Registers the adapter and the repair of interrupted changes. */
	public function register(): void {
		add_filter( ApplyAdapters::HOOK, [ $this, 'answer' ], 10, 2 );
		add_action( 'init', [ new RunningChange( $this->site ), 'settle' ] );
		add_action( 'wp_codebox_apply_recorded', [ $this, 'end' ], 10, 0 );
		add_action( 'wp_codebox_interrupted_change', [ $this->recovery, 'report' ], 10, 2 );
	}

	/**
	 * Answers the filter: applies the change unless another plugin already has, or direct apply is off.
	 *
	 * @param mixed $result  Result of another plugin, or null.
	 * @param mixed $payload Approved change.
	 */
	public function answer( mixed $result, mixed $payload = [] ): mixed {
		if ( null !== $result || ! $this->settings->direct_apply() || ! is_array( $payload ) ) {
			return $result;
		}
		try {
			return $this->apply( $payload );
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	}

	/** Ends a change whose result is in the audit log. The mail comes last, because sending it may take long. */
	public function end(): void {
		[ $running, $mail ]           = [ $this->running, $this->mail ];
		[ $this->running, $this->mail ] = [ null, null ];
		$running?->end();
		if ( null !== $mail ) {
			$this->recovery->send( ...$mail );
		}
	}

	/**
	 * Applies a change and describes it as `wp-codebox/apply-result/v1`.
	 *
	 * @param array<string, mixed> $payload Approved change.
	 * @return array<string, mixed>
	 * @throws Failure When nothing was changed.
	 */
	private function apply( array $payload ): array {
		$this->files->assert_confirmed( $payload );
		RecoveryFile::write();
		$this->mail    = null;
		$this->running = new RunningChange( $this->site );
		$result        = $this->running->during(
			[
				'event'       => 'apply',
				'artifact_id' => $payload['artifact_id'],
				'run_id'      => $payload['run_id'],
			],
			fn( string $check ): array => Changes::apply(
				$this->site->id(),
				[
					'reference'       => $payload['run_id'],
					'approved_files'  => $payload['approved_files'],
					'manifest_sha256' => $payload['manifest_sha256'],
					'patch_sha256'    => $payload['patch_sha256'],
					'targets'         => $payload['targets'],
					'trusted_keys'    => $this->settings->trusted_keys(),
				] + array_filter(
					[
						'confirm_browser_origin' => ! empty( $payload['browser_origin_confirmed'] ),
						'confirm_sensitive'      => true === ( $payload['confirm_sensitive'] ?? false ),
					]
				),
				$this->health->options( $check ),
				[ OpcodeCache::class, 'drop' ]
			)
		);
		$applied = 'applied' === $result['status'];
		$this->mail = $applied ? [ $result['change'], $payload, $payload['approved_files'], get_current_user_id() ] : null;
		return [
			'schema'          => 'wp-codebox/apply-result/v1',
			'adapter'         => self::ADAPTER,
			'status'          => $applied ? 'applied' : 'failed',
			'audit_reference' => $result['change'],
			'target'          => [ 'mounts' => array_keys( $payload['targets'] ) ],
			'applied_files'   => $applied ? $payload['approved_files'] : [],
			'message'         => ChangeReport::sentence( $result ),
		] + array_intersect_key( $result, [ 'health' => 1, 'conflicts' => 1 ] );
	}
}
