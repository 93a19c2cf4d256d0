/**
 * "Keep as a bundle": uploads the changed files; the site makes the bundle.
 */
import { upload, type ChangeSet } from '../changes';
import { failure } from '../failure';
import { i18n } from '../i18n';
import { run, sessionId, type PageSettings } from '../page';
import { button, code, el, notice, problem } from './dom';

export class KeepView {
	/** The button, for the tool bar. */
	readonly button: HTMLButtonElement;
	/** Progress and result. */
	readonly element: HTMLElement;
	private busy = false;

	constructor(
		private readonly settings: PageSettings,
		/** Saves the editor and returns the changes; null when there is a reason not to go on, which the page has shown. */
		private readonly collect: () => Promise< ChangeSet | null >,
		private readonly kept: ( changes: ChangeSet, artifact: string ) => void
	) {
		this.button = button( i18n.__( 'Keep as a bundle', 'codebox' ), () => void this.keep(), { class: 'button button-primary', disabled: true } );
		this.element = el( 'div', { class: 'wp-codebox-keep' } );
		if ( ! settings.can_keep || ! settings.keep ) {
			this.button.title = i18n.__( 'Your user may not keep bundles on this site.', 'codebox' );
		}
	}

	/** Enables the button when there is something to keep. */
	offer( changes: ChangeSet ): void {
		this.button.disabled = this.busy || 0 === changes.files.length || ! this.settings.can_keep || ! this.settings.keep;
	}

	private async keep(): Promise< void > {
		const { keep } = this.settings;
		if ( this.busy || ! keep ) {
			return;
		}
		this.busy = true;
		this.button.disabled = true;
		const bar = el( 'progress', { max: 1, value: 0, 'aria-label': i18n.__( 'Upload', 'codebox' ) } );
		const label = el( 'span', {}, i18n.__( 'Collecting the changes…', 'codebox' ) );
		this.element.replaceChildren( notice( 'info', el( 'p', {}, label, ' ', bar ) ) );
		let changes: ChangeSet | null = null;
		try {
			changes = await this.collect();
			if ( ! changes || 0 === changes.files.length ) {
				this.element.replaceChildren( changes ? notice( 'info', el( 'p', {}, i18n.__( 'Nothing was changed, so there is nothing to keep.', 'codebox' ) ) ) : '' );
				return;
			}
			label.textContent = i18n.__( 'Uploading the changed files…', 'codebox' );
			const answer = await run(
				keep,
				{
					session_id: sessionId( this.settings ),
					...upload( changes ),
					provenance: { source: 'browser-workbench', isolation: this.settings.isolation, changes_digest: changes.digest },
				},
				{
					onSent: ( fraction ) => {
						bar.value = fraction;
						if ( 1 === fraction ) {
							bar.removeAttribute( 'value' );
							label.textContent = i18n.__( 'The site checks the files and stores the bundle…', 'codebox' );
						}
					},
				}
			);
			const artifact = String( answer.artifact_id ?? ( answer.artifact as { id?: unknown } | undefined )?.id ?? '' );
			const review = this.settings.review_url && artifact ? this.settings.review_url.replace( '%s', encodeURIComponent( artifact ) ) : '';
			this.element.replaceChildren(
				notice(
					'success',
					el( 'p', {}, i18n.__( 'The bundle is stored.', 'codebox' ), ' ', code( artifact ) ),
					el( 'p', {}, i18n.__( 'Nothing on this site was changed. A bundle from a browser needs a review and a separate confirmation before it can be applied.', 'codebox' ) ),
					review ? el( 'p', {}, el( 'a', { class: 'button button-primary', href: review, target: '_blank', rel: 'noopener' }, i18n.__( 'Review the bundle', 'codebox' ) ) ) : null
				)
			);
			this.kept( changes, artifact );
		} catch ( thrown ) {
			this.element.replaceChildren( problem( failure( thrown ), el( 'p', {}, i18n.__( 'No bundle was stored. Your edits are still here.', 'codebox' ) ), el( 'p', {}, button( i18n.__( 'Try again', 'codebox' ), () => void this.keep() ) ) ) );
		} finally {
			this.busy = false;
			if ( changes ) {
				this.offer( changes );
			} else {
				this.button.disabled = false;
			}
		}
	}
}
