<?php
/**
 * Registers the settings and their validation.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use Throwable;
use WPCodebox\Connector\CallerGrants;
use WPCodebox\DirectApply\SettingChecks as ApplyChecks;
use WPCodebox\Failure;
use WPCodebox\GitBranch\Repository;
use WPCodebox\GitBranch\SettingCheck;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * Registers the settings with WordPress, so every writer is validated: the settings page, `options.php`, `wp
 * option`. An invalid value leaves the old value unchanged and reports an error. A value may have its stored
 * form or the form that the settings page posts.
 */
final class SettingRules {

	public const GROUP = 'wp-codebox';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param SettingChecks $checks Validators of the values.
	 */
	public function __construct( private readonly SettingChecks $checks ) {}

	/** Registers the settings when WordPress has loaded (hook `init`). */
	public function register(): void {
		add_action( 'init', [ $this, 'register_settings' ] );
	}

	/** Registers every setting. Agents and providers come before the defaults that refer to them. */
	public function register_settings(): void {
		foreach ( $this->rules() as $option => [ $type, $default, $description, $rule ] ) {
			register_setting(
				self::GROUP,
				$option,
				[
					'type'              => $type,
					'description'       => $description,
					'default'           => $default,
					// WordPress shows the arguments of its settings endpoint to everyone, so no setting is
					// exposed there.
					'show_in_rest'      => false,
					'sanitize_callback' => fn( mixed $value ): mixed => $this->accept( $option, $value, $default, $rule ),
				]
			);
		}
	}

	/**
	 * Returns the names of all settings in the order in which they must be stored.
	 *
	 * @return list<string>
	 */
	public function options(): array {
		return array_keys( $this->rules() );
	}

	/**
	 * Returns type, default, description and validator of each setting.
	 *
	 * @return array<string, array{string, mixed, string, callable(mixed): mixed}>
	 */
	private function rules(): array {
		$name = [ $this->checks, 'name' ];
		return [
			Settings::AGENTS              => [ 'object', [], __( 'Agents by name: command line and exit codes that mean success.', 'codebox' ), [ $this->checks, 'agents' ] ],
			Settings::DEFAULT_AGENT       => [ 'string', '', __( 'Agent that runs when a task names none.', 'codebox' ), [ $this->checks, 'default_agent' ] ],
			Settings::PROVIDERS           => [ 'object', [], __( 'Model providers by id: API, base URL, and where the key is stored.', 'codebox' ), [ $this->checks, 'providers' ] ],
			Settings::DEFAULT_PROVIDER    => [ 'string', '', __( 'Model provider for tasks that name none.', 'codebox' ), [ $this->checks, 'default_provider' ] ],
			Settings::DEFAULT_MODEL       => [ 'string', '', __( 'Model for tasks that name none.', 'codebox' ), $name ],
			Settings::INSTRUCTIONS        => [ 'string', '', __( 'Instructions sent to the built-in agent with every task.', 'codebox' ), [ $this->checks, 'instructions' ] ],
			Settings::COMPONENT_CONTRACTS => [ 'array', [], __( 'Plugins that every sandbox loads (components), by slug.', 'codebox' ), [ $this->checks, 'components' ] ],
			Settings::TRUSTED_KEYS        => [ 'array', [], __( 'Ids of further signing keys; bundles that they signed may be applied.', 'codebox' ), [ $this->checks, 'keys' ] ],
			Settings::TRUSTED_CALLERS     => [ 'object', [], __( 'Scopes for browser sandboxes that each application password has, by the id of the password.', 'codebox' ), [ new CallerGrants(), 'check' ] ],
			Settings::LIMITS              => [ 'object', [], __( 'Limits of a task: defaults and ceilings.', 'codebox' ), [ $this->checks, 'limits' ] ],
			Settings::MAX_RUNS            => [ 'integer', 0, __( 'Maximum number of parallel runs; 0 uses the limit of the host.', 'codebox' ), [ $this->checks, 'max_runs' ] ],
			ShareSettings::USER_MAX_RUNS  => [
				'integer',
				0,
				__( 'Maximum number of parallel runs of one user; 0 is half of those of the site.', 'codebox' ),
				[ $this->checks, 'max_runs' ],
			],
			ShareSettings::SPEND          => [
				'object',
				[],
				__( 'Caps of the model cost in a calendar month.', 'codebox' ),
				[ $this->checks, 'spend' ],
			],
			Settings::DIRECT_APPLY        => [ 'boolean', false, __( 'Whether the plugin itself writes approved changes into this site.', 'codebox' ), [ ApplyChecks::class, 'direct_apply' ] ],
			Settings::GIT_BRANCH          => [ 'object', [], __( 'Git repository and branch that get approved changes.', 'codebox' ), [ new SettingCheck( new Repository( new Settings() ) ), 'check' ] ],
			Settings::FOUR_EYES           => [ 'boolean', false, __( 'Whether the user who asked for a change may not approve it.', 'codebox' ), [ ApplyChecks::class, 'flag' ] ],
			Settings::FORGET_CHANGES      => [ 'boolean', false, __( 'Whether uninstalling the plugin also deletes the old files that a roll back needs.', 'codebox' ), [ ApplyChecks::class, 'flag' ] ],
			Settings::HEALTH_URLS         => [ 'array', [], __( 'Pages that must work after a change, besides those of WordPress.', 'codebox' ), [ ApplyChecks::class, 'health_urls' ] ],
			Settings::RETENTION           => [ 'object', [], __( 'What garbage collection removes.', 'codebox' ), [ $this->checks, 'retention' ] ],
		];
	}

	/**
	 * Returns the validated value, or the stored value when validation fails.
	 *
	 * @param string                 $option  Name of the option.
	 * @param mixed                  $value   New value.
	 * @param mixed                  $default Default of the option.
	 * @param callable(mixed): mixed $rule    Returns the value to store, or throws.
	 */
	private function accept( string $option, mixed $value, mixed $default, callable $rule ): mixed {
		try {
			return $rule( $value );
		} catch ( Throwable $thrown ) {
			if ( function_exists( 'add_settings_error' ) ) {
				add_settings_error( $option, $option, Failure::from( $thrown )->getMessage() );
			}
			return get_site_option( $option, $default );
		}
	}
}
