// Queries a document from an isolated world, where the page's own scripts cannot change the result.
// `query_document` in page.rs adds `locate` (locate.js) and calls this function with a JSON object.
((query) => {
	try {
		let root = document;
		const frames = () => [...document.querySelectorAll('iframe, frame')];
		let frame = null;
		if (query.frame) {
			frame = locate(document, query.frame)[0];
			if (!frame) return { error: 'no element matches the frame selector', count: 0, visible: 0 };
		}
		if (query.frameUrl) {
			frame = frames().find((one) => {
				try { return String(one.contentWindow.location.href).includes(query.frameUrl); } catch (e) { return String(one.src).includes(query.frameUrl); }
			});
			if (!frame) return { error: 'no frame has a URL that contains the text after frame-url:', count: 0, visible: 0 };
		}
		if (frame) {
			if (query.frameBox) {
				frame.scrollIntoView({ block: 'center', behavior: 'instant' });
				const box = frame.getBoundingClientRect();
				return { count: 1, visible: 1, box: [box.left + scrollX, box.top + scrollY, box.width, box.height] };
			}
			root = frame.contentDocument;
			if (!root) return { error: 'the frame has another origin than the page, so it cannot be searched', count: 0, visible: 0 };
		}
		const found = {
			url: String(root.location ? root.location.href : '').slice(0, 4000),
			title: String(root.title).slice(0, 1000),
			count: 0,
			visible: 0,
		};
		if (query.selector === null || query.selector === undefined) return found;
		let all = locate(root, query.selector);
		// The canvas of the block editor is a frame; a selector that matches nothing outside of it means an element inside.
		if (!frame && query.canvas && all.length === 0) {
			const canvas = document.querySelector(query.canvas);
			if (canvas && canvas.contentDocument) {
				[frame, root] = [canvas, canvas.contentDocument];
				all = locate(root, query.selector);
			}
		}
		// The opening tag with the attributes by which a reader recognises the element.
		const tag = (one) => {
			const names = ['id', 'class', 'name', 'type', 'role'].filter((name) => one.getAttribute(name));
			return `<${[one.tagName.toLowerCase(), ...names.map((name) => `${name}="${one.getAttribute(name).slice(0, 100)}"`)].join(' ')}>`;
		};
		const shows = (one) => {
			const box = one.getBoundingClientRect();
			return box.width > 0 && box.height > 0 && one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
		};
		found.count = all.length;
		let first = null;
		for (let at = 0; at < all.length && at < 5000; at++) {
			if (shows(all[at])) {
				found.visible++;
				first = first || all[at];
			}
		}
		if (query.boxes) {
			found.boxes = all.slice(0, query.boxes).map((one) => {
				const box = one.getBoundingClientRect();
				return { x: box.left + scrollX, y: box.top + scrollY, width: box.width, height: box.height };
			});
		}
		const one = all[0];
		if (one) {
			found.text = String(one.value !== undefined && ['INPUT', 'TEXTAREA', 'SELECT'].includes(one.tagName) ? one.value : one.innerText || one.textContent || '').slice(0, 20000);
			if (query.attribute) {
				const value = one.getAttribute(query.attribute);
				found.attribute = value === null ? null : value.slice(0, 4000);
			}
		}
		const shown = first || one;
		if (shown) {
			found.disabled = shown.matches(':disabled');
			found.checked = shown.checked === undefined ? shown.getAttribute('aria-checked') === 'true' : Boolean(shown.checked);
		}
		if (query.act && !first) return found;
		if (query.act) {
			first.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
			const box = first.getBoundingClientRect();
			const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
			const hit = root.elementFromPoint(x, y);
			found.covered = !(hit && (hit === first || first.contains(hit) || hit.contains(first) || (first.labels && [...first.labels].some((label) => label.contains(hit)))));
			if (found.covered) found.coveredBy = hit ? tag(hit) : 'nothing that can be hit at its middle';
			found.tag = tag(first);
			found.control = first.tagName === 'INPUT' ? first.type : first.isContentEditable ? 'editable' : first.tagName.toLowerCase();
			found.readOnly = first.matches('input:read-only, textarea:read-only') && first.hasAttribute('readonly');
			if (['INPUT', 'TEXTAREA'].includes(first.tagName)) found.value = String(first.value).slice(0, 20000);
			if (first.maxLength >= 0) found.maxLength = first.maxLength;
			let [dx, dy] = [0, 0];
			if (frame) {
				frame.scrollIntoView({ block: 'center', behavior: 'instant' });
				const outer = frame.getBoundingClientRect();
				[dx, dy] = [outer.left + frame.clientLeft, outer.top + frame.clientTop];
			}
			found.x = x + dx;
			found.y = y + dy;
			found.box = [box.left + dx + scrollX, box.top + dy + scrollY, box.width, box.height];
		}
		if (query.act === 'focus') {
			first.focus();
			found.focused = root.activeElement === first || first.contains(root.activeElement);
			if (query.selectAll) {
				if (first.select) first.select();
				else root.getSelection().selectAllChildren(first);
			}
		}
		if (query.act === 'set') {
			first.value = query.value;
			for (const kind of ['input', 'change']) first.dispatchEvent(new Event(kind, { bubbles: true }));
			found.value = String(first.value).slice(0, 20000);
		}
		if (query.act === 'select') {
			const options = [...(first.options || [])];
			const wanted = query.values.map((value) => options.find((option) => option.value === value || option.label === value));
			if (wanted.includes(undefined)) return { ...found, error: 'it has no option with this value or label' };
			if (wanted.length > 1 && !first.multiple) return { ...found, error: 'only one of its options can be selected' };
			for (const option of options) option.selected = wanted.includes(option);
			for (const kind of ['input', 'change']) first.dispatchEvent(new Event(kind, { bubbles: true }));
		}
		if (query.act === 'scroll') first.scrollBy(query.x, query.y);
		return found;
	} catch (error) {
		return { error: String(error && error.message || error).slice(0, 500), count: 0, visible: 0 };
	}
})
